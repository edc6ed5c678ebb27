//! `kvasir kv`: accesses the pairs of a namespace, over NVMe/TCP or through the kernel.
//!
//! 1. [`key`] parses keys, [`value`] reads values: wrong input is refused before anything is sent.
//! 2. [`place`] opens the namespace that a target names, over NVMe/TCP or through the kernel.
//! 3. [`pairs`] runs a command on its pairs, [`info`] describes the namespace.
//! 4. [`export`] copies a database of a Redis server by [`source`] into an [`archive`]. [`import`]
//!    stores an archive by [`destination`], keeps its progress in a [`journal`], and compares by
//!    [`verify`]. [`moved`] counts the pairs.

mod archive;
mod database;
mod destination;
mod export;
mod import;
mod info;
mod journal;
mod key;
mod moved;
mod pairs;
mod place;
mod source;
mod value;
mod verify;

use crate::args::{KvCommand, StoreArgs};
use crate::output::{Failure, Output};
use crate::outputs;
pub(crate) use info::Limits;
use key::Spelling;
pub(crate) use key::shown as shown_key;
use pairs::Action;
use place::Place;
use spec::StoreOptions;

/// Runs `command`.
pub(crate) fn run(command: &KvCommand) -> Result<Output, Failure> {
    match command {
        KvCommand::Store(args) => store(args),
        KvCommand::Retrieve(args) => {
            let key = Spelling::of(args.pair.hex).parse(&args.key)?;
            if let Some(path) = &args.output {
                outputs::check(&[path], &[])?;
            }
            Place::parse(&args.pair.target)?.act(&Action::Retrieve { key, file: &args.output })
        }
        KvCommand::Delete(args) => {
            let key = Spelling::of(args.pair.hex).parse(&args.key)?;
            Place::parse(&args.pair.target)?.act(&Action::Delete { key })
        }
        KvCommand::Exist(args) => {
            let key = Spelling::of(args.pair.hex).parse(&args.key)?;
            let found = Place::parse(&args.pair.target)?.act(&Action::Exist { key });
            // Status 1: the key does not exist.
            found.map_err(|failure| match failure {
                Failure::Broken(sentence) => Failure::Refused(sentence),
                refused @ Failure::Refused(_) => refused,
            })
        }
        KvCommand::List(args) => {
            let spelling = Spelling::of(args.pair.hex);
            let prefix = args.prefix.as_ref().map(|prefix| spelling.parse(prefix)).transpose()?;
            Place::parse(&args.pair.target)?.act(&Action::List { prefix, spelling })
        }
        KvCommand::Export(args) => export::run(args),
        KvCommand::Import(args) => import::run(args),
        KvCommand::Info(args) => {
            let info = Place::parse(&args.target)?.info()?;
            Ok(if args.json { Output::json(&info) } else { Output::new(info.table()) })
        }
    }
}

fn store(args: &StoreArgs) -> Result<Output, Failure> {
    let key = Spelling::of(args.pair.hex).parse(&args.key)?;
    let place = Place::parse(&args.pair.target)?;
    let value = value::read(&args.file)?;
    let options = match (args.if_absent, args.if_present) {
        (true, _) => StoreOptions::MUST_NOT_EXIST,
        (_, true) => StoreOptions::MUST_EXIST,
        _ => StoreOptions::NONE,
    };
    place.act(&Action::Store { key, value, options })
}
