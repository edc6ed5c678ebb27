//! Chooses the address by which hosts reach a listener that is bound to all addresses of this
//! machine.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Addresses that no machine has (RFC 5737, RFC 3849): packets to them take the default route.
const FAR_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const FAR_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// Returns the address that hosts can use for a listener at `bound`. For 0.0.0.0 or [::] it is one
/// of this machine's: first the one towards its default route, then any other, then loopback.
pub(super) fn reachable(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => own_v4().unwrap_or(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
            let by_v4 = || takes_both().then(own_v4).flatten();
            own_v6().or_else(by_v4).unwrap_or(Ipv6Addr::LOCALHOST.into())
        }
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}

fn own_v4() -> Option<IpAddr> {
    let any = || v4_addresses(&fs::read_to_string("/proc/net/fib_trie").ok()?).next();
    towards(FAR_V4).or_else(any)
}

fn own_v6() -> Option<IpAddr> {
    let any = || v6_addresses(&fs::read_to_string("/proc/net/if_inet6").ok()?).next();
    towards(FAR_V6).or_else(any)
}

/// True if a listener at [::] also accepts IPv4.
fn takes_both() -> bool {
    fs::read_to_string("/proc/sys/net/ipv6/bindv6only").is_ok_and(|text| text.trim() == "0")
}

/// Returns the address from which this machine would send to `far`, if it has a route. Sends
/// nothing.
fn towards(far: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match far {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Port 9 is the discard protocol's.
    socket.connect((far, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(is_for_others)
}

fn is_for_others(address: &IpAddr) -> bool {
    !address.is_loopback() && !address.is_unspecified()
}

/// Returns the addresses of this machine in `/proc/net/fib_trie`: each is a leaf with a line that
/// says so.
fn v4_addresses(text: &str) -> impl Iterator<Item = IpAddr> {
    let lines = text.lines().map(str::trim);
    let pairs = lines.clone().zip(lines.skip(1));
    let own = pairs.filter(|(_, kind)| *kind == "/32 host LOCAL");
    own.filter_map(|(leaf, _)| leaf.strip_prefix("|-- ")?.parse().ok()).filter(is_for_others)
}

/// Returns the addresses in `/proc/net/if_inet6` that are valid beyond their link (scope 0).
fn v6_addresses(text: &str) -> impl Iterator<Item = IpAddr> {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let global = lines.filter(|fields| fields.get(3) == Some(&"00"));
    let addresses = global.filter_map(|fields| u128::from_str_radix(fields[0], 16).ok());
    addresses.map(|bits| IpAddr::V6(bits.into())).filter(is_for_others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unspecified_addresses_are_replaced() {
        for text in ["127.0.0.1:4420", "192.0.2.7:1", "[::1]:4420", "[2001:db8::7]:1"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(reachable(address), address);
        }
        for text in ["0.0.0.0:4420", "[::]:4420"] {
            let reached = reachable(text.parse().unwrap());
            assert!(!reached.ip().is_unspecified() && reached.port() == 4420, "{reached}");
            // The address is this machine's: a socket can be bound to it.
            UdpSocket::bind((reached.ip(), 0)).unwrap();
        }
    }

    #[test]
    fn own_ipv4_addresses_are_the_local_leaves() {
        // Printed by Linux 6.12 for two interfaces.
        let text = "Local:
  +-- 0.0.0.0/0 3 0 5
     +-- 10.0.2.0/24 2 0 2
        |-- 10.0.2.0
           /24 link UNICAST
        |-- 10.0.2.15
           /32 host LOCAL
        |-- 10.0.2.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
     |-- 192.168.7.2
        /32 host LOCAL
";
        let found: Vec<_> = v4_addresses(text).map(|address| address.to_string()).collect();
        assert_eq!(found, ["10.0.2.15", "192.168.7.2"]);
        assert_eq!(v4_addresses("").next(), None);
    }

    #[test]
    fn own_ipv6_addresses_are_those_of_global_scope() {
        // Address, interface, prefix length, scope, flags, name.
        let text = "\
00000000000000000000000000000001 01 80 10 80       lo
fe80000000000000505400fffe123456 02 40 20 80     eth0
20010db8000000000000000000000007 02 40 00 80     eth0
";
        let found: Vec<_> = v6_addresses(text).map(|address| address.to_string()).collect();
        assert_eq!(found, ["2001:db8::7"]);
        assert_eq!(v6_addresses("no line of it").next(), None);
    }
}
