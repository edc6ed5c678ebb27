use crate::ProfileError;
use crate::profile::field::Field;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use crate::server::{Cores, Pace, parse_address, parse_http_address};
use std::net::SocketAddr;
use std::num::NonZero;

pub(super) const SCHEMA: Schema =
    Schema { name: "server", title: "[server]", keys: &["cores", "clock", "nvme_tcp", "http"] };

/// The listeners and the threads behind them.
pub(super) struct Listen {
    pub(super) nvme_tcp: Vec<SocketAddr>,
    pub(super) http: Option<SocketAddr>,
    pub(super) cores: Cores,
    pub(super) pace: Pace,
}

/// Reads a number of threads, or a text with a list of processors.
fn cores(field: Field<'_>) -> Result<Cores, ProfileError> {
    if field.is_text() {
        return field.line_of_text()?.parse().map_err(|problem| field.wrong(problem));
    }
    let count = field.whole(1..=u16::MAX.into())?;
    let count = u16::try_from(count).ok().and_then(NonZero::new);
    Ok(count.expect("it is in that range").into())
}

fn addresses(field: Field<'_>) -> Result<Vec<SocketAddr>, ProfileError> {
    let read = |element: Field<'_>| {
        let address = parse_address(&element.line_of_text()?);
        address.map_err(|problem| element.wrong(problem))
    };
    let addresses = field.elements().into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if addresses.is_empty() {
        return Err(field.must_be("a list of addresses, as [\"127.0.0.1:4420\"]"));
    }
    Ok(addresses)
}

impl Listen {
    pub(super) fn read(section: Section<'_>) -> Result<Self, ProfileError> {
        let cores = section.optional("cores").map_or(Ok(NonZero::<u16>::MIN.into()), cores)?;
        let pace = section.optional("clock").map_or(Ok(Pace::Real), |field| {
            field.choice(&[("real", Pace::Real), ("none", Pace::None)])
        })?;
        let nvme_tcp = section.optional("nvme_tcp").map_or(Ok(Vec::new()), addresses)?;
        let http = section.optional("http").map(|field| {
            let address = parse_http_address(&field.line_of_text()?);
            address.map_err(|problem| field.wrong(problem))
        });
        let http = http.transpose()?;
        Ok(Self { nvme_tcp, http, cores, pace })
    }
}
