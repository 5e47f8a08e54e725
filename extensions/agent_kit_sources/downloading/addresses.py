"""Which addresses are on the public internet: a table, and a value that judges by it.

Nothing is looked up here. An IPv6 address that carries an IPv4 one is judged by what it carries where
that is how public hosts are reached (IPv4-mapped, NAT64), and refused where it isn't (6to4, Teredo).
Source: IANA's registries of special-purpose addresses, and the clouds' manuals for metadata services.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_network,
)
from typing import Final

__all__ = ["METADATA", "NOT_PUBLIC", "PUBLIC", "Address", "AddressGuard"]

Address = IPv4Address | IPv6Address
_Net = IPv4Network | IPv6Network

# Everything else is refused without a row.
PUBLIC: Final[tuple[_Net, ...]] = (ip_network("0.0.0.0/0"), ip_network("2000::/3"))

NOT_PUBLIC: Final[tuple[tuple[_Net, str], ...]] = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "this network, unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a carrier's customers (CGNAT); Alibaba's metadata service"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "Azure's platform channel, on an address that looks public"),
        ("169.254.0.0/16", "link-local; metadata services"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignments; Oracle's classic metadata service"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relays, deprecated"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved; broadcast"),
        ("2001::/23", "protocol assignments: Teredo, benchmarking, ORCHID"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4: carries any IPv4 address"),
        ("3fff::/20", "documentation"),
    )
)

# Looked for in every place where a translator with a prefix of its own may have put an address: too
# few to be met by chance.
METADATA: Final[frozenset[IPv4Address]] = frozenset(
    map(
        IPv4Address,
        (
            "169.254.169.254",  # most clouds
            "169.254.170.2",  # AWS, of a container
            "169.254.170.23",  # AWS, of a pod
            "169.254.42.42",  # Scaleway
            "168.63.129.16",  # Azure
            "100.100.100.200",  # Alibaba
            "192.0.0.192",  # Oracle, classic
        ),
    )
)

_NAT64: Final = ip_network("64:ff9b::/96")  # RFC 6052: how a network without IPv4 reaches it
_ISATAP: Final = (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")  # RFC 5214, bytes 8 to 11
# RFC 6052, section 2.2: which bytes of an address hold the IPv4 one, for each length of a prefix.
_TRANSLATED: Final = (
    (4, 5, 6, 7),  # /32
    (5, 6, 7, 9),  # /40
    (6, 7, 9, 10),  # /48
    (7, 9, 10, 11),  # /56
    (9, 10, 11, 12),  # /64
    (12, 13, 14, 15),  # /96
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressGuard:
    """Judges addresses, without looking anything up.

    An address is allowed that lies in one of ``within``, in none of ``refused`` (each with its reason),
    and that no translator turns into one of ``hidden``. The default is the public internet.
    """

    within: tuple[_Net, ...] = PUBLIC
    refused: tuple[tuple[_Net, str], ...] = NOT_PUBLIC
    hidden: frozenset[IPv4Address] = METADATA

    def why_not(self, address: Address) -> str | None:
        """Why nothing is fetched from an address, for the operator; ``None`` when it may be.

        >>> from ipaddress import ip_address
        >>> AddressGuard().why_not(ip_address("::ffff:10.0.0.1"))
        'private'
        """
        if isinstance(address, IPv4Address):
            return self._listed(address)
        if address.scope_id is not None:
            return "it has a zone, which is a link of this machine"
        if (carried := _reached(address)) is not None:
            return self._listed(carried)
        return self._listed(address) or self._disguised(address)

    def _listed(self, address: Address) -> str | None:
        """What the tables say of the address itself."""
        for network, reason in self.refused:
            if address in network:
                return reason
        if any(address in network for network in self.within):
            return None
        return "not assigned to public hosts"

    def _disguised(self, address: IPv6Address) -> str | None:
        """What the IPv4 addresses that it may be turned into are refused for."""
        if address.packed[8:12] in _ISATAP:
            return self._listed(IPv4Address(address.packed[12:]))
        if any(found in self.hidden for found in _translated(address)):
            return "a translator may turn it into a metadata service's"
        return None


def _reached(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a connection to this one ends at, in forms that public hosts have."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return IPv4Address(address.packed[12:]) if address in _NAT64 else None


def _translated(address: IPv6Address) -> Iterator[IPv4Address]:
    packed = address.packed
    return (IPv4Address(bytes(packed[at] for at in places)) for places in _TRANSLATED)
