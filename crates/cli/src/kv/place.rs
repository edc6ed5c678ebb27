use super::info::{Info, Limits};
use super::pairs::{Action, Doing};
use crate::output::{Failure, Output};
use crate::path::shown;
use crate::remote;
use client::{Pairs, Uri};
use passthrough::{Data, Namespace, PassthroughQueue};
use reactor::Reactor;
use spec::{Cns, Command, CommandSet, IDENTIFY_BYTES, IdentifyController, KvNamespace};
use std::path::{Path, PathBuf};
use zerocopy::FromBytes;

/// Entries of an I/O queue with one command at a time.
const QUEUE_ENTRIES: u16 = 16;

/// The target of a namespace.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Tcp(Uri),
    Kernel(PathBuf),
}

impl Place {
    pub(super) fn parse(target: &str) -> Result<Self, Failure> {
        if Uri::is_meant(target) {
            return target.parse().map(Self::Tcp).map_err(Failure::refused);
        }
        if target.starts_with("/dev/") {
            return Ok(Self::Kernel(target.into()));
        }
        Err(Failure::Refused(format!(
            "the target {target:?} is not possible here: use nvme-tcp://HOST:PORT/NQN, which \
             kvasir serve prints, or /dev/ngXnY"
        )))
    }

    /// Runs `action`, if the namespace accepts it.
    pub(super) fn act(&self, action: &Action<'_>) -> Result<Output, Failure> {
        match self {
            Self::Tcp(uri) => {
                let done = remote::with(uri, QUEUE_ENTRIES, async |connected| {
                    action.check(&Limits::of(connected.pairs(uri)?))?;
                    let queue = connected.queue.clone();
                    let why = || {
                        let error = connected.queue.failure();
                        let error = error.or_else(|| connected.association.failure());
                        error.map(|error| remote::broken(uri, &error))
                    };
                    let pairs = Pairs::new(queue, uri.nsid);
                    Doing { pairs: &pairs, why: &why }.act(action).await
                });
                done.map(|(output, _)| output)
            }
            Self::Kernel(path) => {
                let namespace = open(path)?;
                action.check(&Limits::of(&identify_namespace(&namespace)?))?;
                let nsid = namespace.id();
                let queue = PassthroughQueue::new(namespace);
                let why = || queue.failure().map(|error| Failure::Broken(error.to_string()));
                let pairs = Pairs::new(queue.clone(), nsid);
                let doing = Doing { pairs: &pairs, why: &why };
                Reactor::new(None).run_in_real_time(doing.act(action)).0
            }
        }
    }

    /// Describes the namespace.
    pub(super) fn info(&self) -> Result<Info, Failure> {
        match self {
            Self::Tcp(uri) => {
                let told = remote::with(uri, QUEUE_ENTRIES, async |connected| {
                    let (association, namespace) = (&connected.association, connected.pairs(uri)?);
                    let info =
                        Info::new(uri.to_string(), uri.nsid, association.controller(), namespace);
                    Ok(info.over_tcp(uri.digests, association))
                });
                told.map(|(info, _)| info)
            }
            Self::Kernel(path) => {
                let namespace = open(path)?;
                let controller: IdentifyController =
                    identify(&namespace, Command::identify(Cns::CONTROLLER, 0))?;
                let found = identify_namespace(&namespace)?;
                Ok(Info::new(shown(path), namespace.id(), &controller, &found))
            }
        }
    }
}

fn open(path: &Path) -> Result<Namespace, Failure> {
    Namespace::open(path).map_err(Failure::refused)
}

fn identify_namespace(namespace: &Namespace) -> Result<KvNamespace, Failure> {
    let command = Command::identify(Cns::NAMESPACE_DESCRIPTORS, namespace.id());
    let descriptors: spec::NamespaceDescriptors = identify(namespace, command)?;
    match descriptors.command_set().unwrap_or(CommandSet::NVM) {
        CommandSet::KEY_VALUE => {}
        set => {
            let nsid = namespace.id();
            return Err(Failure::refused(client::Error::NotKeyValue { nsid, set }));
        }
    }
    let command = Command::identify(Cns::NAMESPACE_OF_SET, namespace.id());
    identify(namespace, command.with_csi(CommandSet::KEY_VALUE))
}

fn identify<T: FromBytes>(namespace: &Namespace, command: Command) -> Result<T, Failure> {
    let ended = namespace.administer(&command, Data::Room(IDENTIFY_BYTES));
    let ended = ended.map_err(|error| Failure::Broken(error.to_string()))?;
    let name = format!("Identify {}", command.cns());
    if !ended.status.is_success() {
        return Err(Failure::Broken(format!("{name} ended with {}", ended.status)));
    }
    T::read_from_bytes(ended.data.bytes().unwrap_or_default())
        .map_err(|_| Failure::Broken(format!("the answer to {name} is too short")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_targets_are_refused() {
        for (target, words) in [
            ("", "use nvme-tcp://HOST:PORT/NQN"),
            ("sim:moke", "use nvme-tcp://HOST:PORT/NQN"),
            ("ng0n1", "or /dev/ngXnY"),
            ("nvme-tcp:host", "is no target"),
            ("nvme-tcp://host/kv", "NVMe Qualified Name"),
        ] {
            match Place::parse(target) {
                Err(Failure::Refused(sentence)) => assert!(sentence.contains(words), "{sentence}"),
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(Place::parse("/dev/ng0n1"), Ok(Place::Kernel(_))));
        assert!(matches!(
            Place::parse("nvme-tcp://h/nqn.2026-11.com.example:kv"),
            Ok(Place::Tcp(_))
        ));
    }
}
