//! What took long: SLOWLOG and LATENCY.

use crate::call::{Call, Functions};
use crate::failure::{Failure, Outcome};
use crate::latency::Sample;
use crate::number::integer;
use crate::numbering::CommandNumber;
use crate::reply::Reply;
use crate::slow_log::SlowCommand;
use std::future::ready;

pub(crate) const FUNCTIONS: Functions = &[
    ("slowlog", |mut call| Box::pin(ready(slowlog(&mut call)))),
    ("latency", |mut call| Box::pin(ready(Ok(latency(&mut call))))),
];

fn whole(number: u64) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn slowlog(call: &mut Call<'_>) -> Outcome {
    let mut slow = call.door.watcher().slow();
    match call.word() {
        "len" => Ok(Reply::count(slow.len())),
        "reset" => {
            slow.clear();
            Ok(Reply::Ok)
        }
        "help" => Ok(call.help()),
        _ => {
            let count = match call.request.len() {
                2 => Some(10),
                3 => integer(call.request.arg(2)).filter(|count| *count >= -1),
                _ => return Err(Failure::no_word("slowlog", call.request.arg(1))),
            };
            let text = "ERR count should be greater than or equal to -1";
            let count = count.ok_or_else(|| Failure::told(text))?;
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            Ok(Reply::Array(slow.iter().take(count).map(entry).collect()))
        }
    }
}

fn entry(slow: &SlowCommand) -> Reply {
    Reply::Array(vec![
        whole(slow.id),
        whole(slow.at),
        whole(slow.took.0 / 1_000),
        Reply::Array(slow.args.iter().map(|arg| Reply::bytes(arg)).collect()),
        Reply::text(slow.address.clone()),
        Reply::text(slow.name.clone()),
    ])
}

fn latency(call: &mut Call<'_>) -> Reply {
    let mut latencies = call.door.watcher().latencies();
    match call.word() {
        "latest" => {
            let latest = latencies.iter().filter_map(|(event, series)| {
                let last = series.samples.back()?;
                let facts = [last.at, last.millis, series.millis_max].map(whole);
                Some(Reply::Array([Reply::text(event)].into_iter().chain(facts).collect()))
            });
            Reply::Array(latest.collect())
        }
        "history" => {
            let series = latencies.get(call.request.arg(2));
            let samples = series.into_iter().flat_map(|series| &series.samples);
            let pair = |Sample { at, millis }: &Sample| vec![whole(*at), whole(*millis)];
            Reply::Array(samples.map(|sample| Reply::Array(pair(sample))).collect())
        }
        "reset" => {
            let is_meant = |event: &str| {
                let mut named = call.request.rest(2);
                call.request.len() == 2 || named.any(|name| name == event.as_bytes())
            };
            Reply::count(latencies.forget(is_meant))
        }
        "histogram" => histogram(call),
        _ => call.help(),
    }
}

fn histogram(call: &Call<'_>) -> Reply {
    let numbers: Vec<_> = match call.request.len() {
        2 => CommandNumber::all().collect(),
        _ => {
            let named = call.request.rest(2).filter_map(CommandNumber::asked);
            named.flatten().collect()
        }
    };
    let told = numbers.into_iter().map(|number| (number, call.door.watcher().tallies.get(number)));
    let known = told.filter(|(_, told)| told.calls > 0).map(|(number, told)| {
        let within = told.within.into_iter().map(|(micros, calls)| (whole(micros), whole(calls)));
        let facts = vec![
            (Reply::text("calls"), whole(told.calls)),
            (Reply::text("histogram_usec"), Reply::Map(within.collect())),
        ];
        (Reply::text(number.name()), Reply::Map(facts))
    });
    Reply::Map(known.collect())
}
