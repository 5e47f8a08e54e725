"""The fixtures for other people's tests, as such a test run loads them."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(params=["option", "conftest"])
def run(request: pytest.FixtureRequest, pytester: pytest.Pytester) -> pytest.Pytester:
    """A test folder that loads the plugin in one of the ways that the documentation names."""
    if request.param == "option":
        pytester.plugins.append("agent_kit.testing.pytest_plugin")
    else:
        pytester.makeconftest('pytest_plugins = ["agent_kit.testing.pytest_plugin"]')
    return pytester


def passes(pytester: pytest.Pytester, source: str, count: int) -> None:
    pytester.makepyfile(source)
    done = pytester.runpytest_subprocess("--strict-markers", "-W", "error", "-p", "no:asyncio")
    done.assert_outcomes(passed=count)


def test_a_model_runs_until_its_test_ends(run: pytest.Pytester) -> None:
    source = """
        import urllib.error, urllib.request
        import pytest

        urls = []

        def test_first(scripted_model):
            with pytest.raises(TypeError):
                scripted_model(["a"], subagents={"p": 3})
            model = scripted_model(["a"], subagents={"p": ["b"]})
            urls.append(model.url)
            urllib.request.urlopen(model.url).close()
            assert len(model.requests) == 1
            assert list(model.unplayed) == ["a", "b"]

        def test_second():
            with pytest.raises(urllib.error.URLError):
                urllib.request.urlopen(urls[0], timeout=5)
        """
    passes(run, source, 2)


def test_one_test_may_have_two_models(run: pytest.Pytester) -> None:
    source = """
        import urllib.request

        def test_two(scripted_model):
            first, second = scripted_model(["a"]), scripted_model(["b"])
            urllib.request.urlopen(second.url).close()
            assert (len(first.requests), len(second.requests)) == (0, 1)
        """
    passes(run, source, 1)


def test_the_home_is_empty_and_outside_the_tests_folder(run: pytest.Pytester) -> None:
    source = """
        def test_home(fake_home, tmp_path):
            assert list(fake_home.iterdir()) == []
            assert not fake_home.is_relative_to(tmp_path)
        """
    passes(run, source, 1)


def test_the_e2e_mark_is_known(run: pytest.Pytester) -> None:
    source = """
        import pytest

        @pytest.mark.e2e
        def test_marked():
            pass
        """
    passes(run, source, 1)
