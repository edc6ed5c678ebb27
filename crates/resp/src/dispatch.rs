//! The function of each command of the table.

use crate::call::{Call, Function, Functions};
use crate::command::Command;
use crate::commands::{
    acl, client, config, connection, expiry, formal, hashes, info, keys, multi, numbers, object,
    ranges, scan, server, slow, sorted_sets, strings,
};
use crate::failure::Outcome;
use clock::LocalFuture;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const FAMILIES: [Functions; 18] = [
    strings::FUNCTIONS,
    numbers::FUNCTIONS,
    hashes::FUNCTIONS,
    sorted_sets::FUNCTIONS,
    ranges::FUNCTIONS,
    keys::FUNCTIONS,
    expiry::FUNCTIONS,
    scan::FUNCTIONS,
    object::FUNCTIONS,
    formal::FUNCTIONS,
    multi::FUNCTIONS,
    connection::FUNCTIONS,
    client::FUNCTIONS,
    acl::FUNCTIONS,
    server::FUNCTIONS,
    config::FUNCTIONS,
    info::FUNCTIONS,
    slow::FUNCTIONS,
];

/// The functions in the order of the table.
static FUNCTIONS: OnceLock<Vec<Function>> = OnceLock::new();

fn functions() -> &'static [Function] {
    FUNCTIONS.get_or_init(|| {
        let mut named: BTreeMap<&str, Function> = BTreeMap::new();
        for (name, function) in FAMILIES.into_iter().flatten() {
            let before = named.insert(name, *function);
            assert!(before.is_none(), "{name} has one function");
        }
        let take = |command: &Command| named.remove(command.name).expect("it has a function");
        let functions = Command::all().map(take).collect();
        assert!(named.is_empty(), "functions without a command: {:?}", named.keys());
        functions
    })
}

/// Executes a command.
pub(crate) fn run(call: Call<'_>) -> LocalFuture<'_, Outcome> {
    functions()[call.command.place](call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_function() {
        assert_eq!(functions().len(), Command::all().count());
    }
}
