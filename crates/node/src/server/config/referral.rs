use crate::ProfileError;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use crate::server::connections::transport_address;
use controller::TransportAddress;
use std::net::{IpAddr, SocketAddr};

pub(super) const SCHEMA: Schema =
    Schema { name: "referral", title: "[[referral]]", keys: &["address", "port"] };

/// Default port of discovery subsystems (NVMe over TCP 1.1).
const DISCOVERY_PORT: u16 = 8_009;

/// Reads the other discovery subsystems, if any.
pub(super) fn read_all(top: Section<'_>) -> Result<Vec<TransportAddress>, ProfileError> {
    if top.optional(SCHEMA.name).is_none() {
        return Ok(Vec::new());
    }
    top.elements(&SCHEMA)?.into_iter().map(read).collect()
}

fn read(section: Section<'_>) -> Result<TransportAddress, ProfileError> {
    let field = section.field("address")?;
    let address = field.line_of_text()?.parse::<IpAddr>();
    let address = address.map_err(|_| field.must_be("an IP address, as 192.0.2.4"))?;
    // Hosts get the address as it is, and 0.0.0.0 would be the host itself.
    if address.is_unspecified() {
        return Err(field.must_be("the IP address of one machine, as 192.0.2.4"));
    }
    let port = section.whole_or("port", 1..=u16::MAX.into(), DISCOVERY_PORT.into())?;
    let port = u16::try_from(port).expect("it is in that range");
    Ok(transport_address(SocketAddr::new(address, port)))
}
