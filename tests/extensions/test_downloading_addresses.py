"""Which addresses are public: what must be caught, near misses, what must stay allowed."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from agent_kit_sources.downloading import AddressGuard
from agent_kit_sources.downloading.addresses import METADATA, NOT_PUBLIC

CAUGHT = [
    ("0.0.0.0", "unspecified"),
    ("0.255.255.255", "this network, its end"),
    ("10.0.0.0", "private"),
    ("10.255.255.255", "private, its end"),
    ("100.64.0.0", "CGNAT"),
    ("100.127.255.255", "CGNAT, its end"),
    ("100.100.100.200", "Alibaba's metadata"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.255", "loopback, its end"),
    ("168.63.129.16", "Azure's platform, which looks public"),
    ("169.254.0.1", "link-local"),
    ("169.254.169.254", "metadata"),
    ("169.254.170.2", "metadata of a container"),
    ("169.254.42.42", "Scaleway's metadata"),
    ("172.16.0.0", "private"),
    ("172.31.255.255", "private, its end"),
    ("192.0.0.170", "protocol assignments"),
    ("192.0.0.192", "Oracle's metadata"),
    ("192.0.2.1", "documentation"),
    ("192.88.99.1", "6to4 relay"),
    ("192.168.0.0", "private"),
    ("192.168.255.255", "private, its end"),
    ("198.18.0.0", "benchmarking"),
    ("198.19.255.255", "benchmarking, its end"),
    ("198.51.100.1", "documentation"),
    ("203.0.113.1", "documentation"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.255", "multicast, its end"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "broadcast"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("::8.8.8.8", "IPv4-compatible, deprecated"),
    ("::10.0.0.1", "IPv4-compatible, private"),
    ("::ffff:127.0.0.1", "IPv4-mapped loopback"),
    ("::ffff:10.0.0.1", "IPv4-mapped private"),
    ("::ffff:a9fe:a9fe", "IPv4-mapped metadata"),
    ("::ffff:168.63.129.16", "IPv4-mapped, Azure"),
    ("::ffff:0:127.0.0.1", "IPv4-translated (SIIT)"),
    ("64:ff9b::10.0.0.1", "NAT64 private"),
    ("64:ff9b::a9fe:a9fe", "NAT64 metadata"),
    ("64:ff9b::127.0.0.1", "NAT64 loopback"),
    ("64:ff9b:1::8.8.8.8", "NAT64 of a network's own"),
    ("64:ff9b:1:a9fe:a9:fe00::", "NAT64 of a network's own, /48"),
    ("100::1", "discard"),
    ("2001::1", "Teredo"),
    ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo with a public server"),
    ("2001::5601:5601", "Teredo, metadata"),
    ("2001:2::1", "benchmarking"),
    ("2001:10::1", "ORCHID"),
    ("2001:20::1", "ORCHIDv2"),
    ("2001:1ff:ffff::1", "protocol assignments, their end"),
    ("2001:db8::1", "documentation"),
    ("2002:7f00:1::", "6to4 loopback"),
    ("2002:a9fe:a9fe::1", "6to4 metadata"),
    ("2002:808:808::1", "6to4 public: no longer a way to anybody"),
    ("2606:4700::5efe:192.168.1.1", "ISATAP private"),
    ("2606:4700::200:5efe:10.0.0.1", "ISATAP private, global bit"),
    ("2606:4700:64::a9fe:a9fe", "a translator's own prefix, /96"),
    ("2606:4700:a9fe:a9fe::", "a translator's own prefix, /32"),
    ("2606:4700:64:a9:fe:a9fe::", "a translator's own prefix, /56"),
    ("2606:4700:64:6400:a9:fea9:fe00:0", "a translator's own prefix, /64"),
    ("3fff::1", "documentation"),
    ("3fff:fff::1", "documentation, its end"),
    ("4000::1", "not assigned"),
    ("5f00::1", "segment routing"),
    ("fc00::1", "unique local"),
    ("fd00:ec2::254", "AWS's metadata"),
    ("fd20:ce::254", "Google's metadata"),
    ("fd00:42::42", "Scaleway's metadata"),
    ("fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "unique local, its end"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local with a zone"),
    ("2606:4700::1%eth0", "public with a zone"),
    ("fec0::1", "site-local, deprecated"),
    ("ff02::1", "multicast"),
    ("ff0e::1", "multicast, global"),
]

ALLOWED = [
    ("1.0.0.0", "after this network"),
    ("1.1.1.1", "a public host"),
    ("8.8.8.8", "a public host"),
    ("9.255.255.255", "before private"),
    ("11.0.0.0", "after private"),
    ("93.184.215.14", "a public host"),
    ("100.63.255.255", "before CGNAT"),
    ("100.128.0.0", "after CGNAT"),
    ("126.255.255.255", "before loopback"),
    ("128.0.0.0", "after loopback"),
    ("168.63.129.15", "before Azure's"),
    ("168.63.129.17", "after Azure's"),
    ("169.253.255.255", "before link-local"),
    ("169.255.0.0", "after link-local"),
    ("172.15.255.255", "before private"),
    ("172.32.0.0", "after private"),
    ("191.255.255.255", "before protocol assignments"),
    ("192.0.1.0", "between protocol assignments and documentation"),
    ("192.0.3.0", "after documentation"),
    ("192.88.98.255", "before 6to4 relays"),
    ("192.88.100.0", "after 6to4 relays"),
    ("192.167.255.255", "before private"),
    ("192.169.0.0", "after private"),
    ("198.17.255.255", "before benchmarking"),
    ("198.20.0.0", "after benchmarking"),
    ("198.51.99.255", "before documentation"),
    ("198.51.101.0", "after documentation"),
    ("203.0.112.255", "before documentation"),
    ("203.0.114.0", "after documentation"),
    ("223.255.255.255", "before multicast"),
    ("::ffff:8.8.8.8", "IPv4-mapped public: the same host"),
    ("64:ff9b::8.8.8.8", "NAT64 public: how a network without IPv4 gets there"),
    ("2000::1", "the first"),
    ("2001:200::1", "after protocol assignments"),
    ("2001:4860:4860::8888", "a public host"),
    ("2001:db7:ffff::1", "before documentation"),
    ("2001:db9::1", "after documentation"),
    ("2003::1", "after 6to4"),
    ("2606:4700:4700::1111", "a public host"),
    ("2606:4700::5efe:8.8.8.8", "ISATAP public"),
    ("2606:4700::1:5efe:10.0.0.1", "not quite ISATAP"),
    ("2606:4700::a00:1", "low bits that look private, without a translator"),
    ("2606:4700:64::a9fe:a9fd", "beside metadata"),
    ("3ffe:ffff::1", "before documentation"),
    ("3fff:1000::1", "after documentation"),
]


@pytest.mark.parametrize(
    "address", [row[0] for row in CAUGHT], ids=[" ".join(row) for row in CAUGHT]
)
def test_an_address_that_isn_t_a_public_host_s_is_caught(address: str) -> None:
    assert AddressGuard().why_not(ip_address(address))


@pytest.mark.parametrize(
    "address", [row[0] for row in ALLOWED], ids=[" ".join(row) for row in ALLOWED]
)
def test_a_public_host_s_address_is_allowed(address: str) -> None:
    assert AddressGuard().why_not(ip_address(address)) is None


@pytest.mark.parametrize("network", [row[0] for row in NOT_PUBLIC], ids=str)
def test_a_row_of_the_table_holds_from_its_first_address_to_its_last(network: object) -> None:
    whole = ip_network(str(network))
    guard = AddressGuard()
    assert guard.why_not(whole[0])
    assert guard.why_not(whole[-1])


def test_every_ipv4_address_that_is_refused_is_refused_inside_ipv6() -> None:
    guard = AddressGuard()
    for network in (ip_network(str(row[0])) for row in NOT_PUBLIC):
        for address in (network[0], network[-1]):
            if address.version == 4:
                high, low = divmod(int(address), 1 << 16)
                for text in (
                    f"::ffff:{address}",
                    f"64:ff9b::{address}",
                    f"2002:{high:x}:{low:x}::1",
                    f"2606:4700::5efe:{address}",
                    f"::{address}",
                ):
                    assert guard.why_not(ip_address(text)), text


def test_every_metadata_service_is_refused_by_its_own_address_too() -> None:
    assert all(AddressGuard().why_not(address) for address in METADATA)


def test_the_table_is_the_host_s_to_change() -> None:
    guard = AddressGuard(within=(ip_network("10.0.0.0/8"),), refused=(), hidden=frozenset())
    assert guard.why_not(ip_address("10.1.2.3")) is None
    assert guard.why_not(ip_address("::ffff:10.1.2.3")) is None
    assert guard.why_not(ip_address("8.8.8.8"))
