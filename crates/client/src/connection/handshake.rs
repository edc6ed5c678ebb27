use super::shared::Shared;
use crate::error::Error;
use net::Stream;
use nvme_tcp::framing::{Arrival, Fault, Inbox, Read, Terms, Written};
use nvme_tcp::pdu::{Digests, FatalError, Header, IcReq, IcResp, Side};

/// HPDA: data may begin at any dword.
const ALIGNMENT: u8 = 4;

/// MAXR2T: the host sends data on request, so that at most one R2T is outstanding.
const R2T_MAX: u32 = 1;

/// The least MAXH2CDATA, and a divisor of it (TCP 1.1, `ICResp`).
const H2C_DATA_MIN: u32 = 4096;
const H2C_DATA_UNIT: u32 = 4;

/// Exchanges `ICReq` and `ICResp` with the target.
pub(super) async fn shake_hands<S: Stream>(
    shared: &Shared<S>,
    digests: Digests,
) -> Result<Inbox, Error> {
    let mut inbox = Inbox::new(Side::Host, shared.counters.clone());
    let request = IcReq::new(ALIGNMENT, digests, R2T_MAX);
    let agreed = async {
        shared.outbox.borrow_mut().push(&request);
        send(shared).await?;
        receive(shared, &mut inbox, &request).await
    };
    let terms = match agreed.await {
        Ok(terms) => terms,
        Err(error) => {
            if let Error::Fault(fault) = error {
                shared.outbox.borrow_mut().push_termination(fault, inbox.last_header());
                // Written without a wait: a target that broke the protocol may not read.
                let _ = shared.outbox.borrow_mut().write(&shared.stream);
            }
            shared.end(error);
            return Err(shared.failure());
        }
    };
    inbox.agree(terms);
    let mut outbox = shared.outbox.borrow_mut();
    outbox.agree(terms);
    outbox.set_data_digest(shared.data_digest.unwrap_or_default());
    shared.terms.set(terms);
    Ok(inbox)
}

async fn send<S: Stream>(shared: &Shared<S>) -> Result<(), Error> {
    loop {
        let written = shared.outbox.borrow_mut().write(&shared.stream);
        match written.map_err(|_| Error::Broken)? {
            Written::All => return Ok(()),
            Written::Full => shared.stream.writable().await,
        }
    }
}

async fn receive<S: Stream>(
    shared: &Shared<S>,
    inbox: &mut Inbox,
    request: &IcReq,
) -> Result<Terms, Error> {
    loop {
        match inbox.next()? {
            Some(Arrival::Header(Header::IcResp(response), _)) => return terms(request, response),
            Some(Arrival::Header(Header::TermReq(term), _)) => {
                let (error, information) = (term.error(), term.information());
                return Err(Error::Terminated { error, information });
            }
            Some(_) => return Err(Fault::of(FatalError::SEQUENCE).into()),
            None => {}
        }
        match inbox.read(&shared.stream).map_err(|_| Error::Broken)? {
            Read::Full | Read::Some => {}
            Read::Nothing => shared.stream.readable().await,
            Read::End => return Err(Error::Ended),
        }
    }
}

fn terms(request: &IcReq, response: &IcResp) -> Result<Terms, Error> {
    if response.format() != 0 {
        return Err(Fault::unsupported(IcReq::FORMAT_AT).into());
    }
    let max = response.h2c_data_max();
    if max < H2C_DATA_MIN || !max.is_multiple_of(H2C_DATA_UNIT) {
        return Err(Fault::field(IcResp::H2C_DATA_MAX_AT).into());
    }
    if response.digests() != request.digests() {
        return Err(Error::Digests);
    }
    Terms::of(request, response).ok_or(Fault::field(IcResp::ALIGNMENT_AT).into())
}
