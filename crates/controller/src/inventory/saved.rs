use super::{Inventory, Slot, State};
use crate::attachments::Exceptions;
use crate::block_run::BlockRun;
use crate::namespace::{NAMESPACES_MAX, Namespace};
use ftl::Zones;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The saved namespaces of a device, relative to those of the new device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedNamespaces {
    namespaces: Vec<(u32, SavedNamespace)>,
    /// Number of deleted namespaces of each id.
    lives: BTreeMap<u32, u32>,
    /// Their attachments.
    pub(crate) attachments: Exceptions,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum SavedNamespace {
    Kv,
    /// Of the blocks of a namespace that there was at the start.
    Block {
        of: usize,
        first: u64,
        count: u64,
    },
    Zoned {
        of: usize,
    },
}

impl Inventory {
    /// Returns `None` while a namespace is being created or deleted.
    pub(crate) fn save(&self) -> Option<SavedNamespaces> {
        let state = self.state();
        let slots = (1..).zip(&state.slots).filter(|(_, slot)| !matches!(slot, Slot::Free));
        let saved = slots.map(|(nsid, slot)| match slot {
            Slot::There((namespace, _)) => Some((nsid, state.save(nsid, namespace)?)),
            _ => None,
        });
        let namespaces = saved.collect::<Option<_>>()?;
        let lives = state.lives.clone();
        Some(SavedNamespaces { namespaces, lives, attachments: Exceptions::default() })
    }

    /// Restores saved namespaces on a new device. Returns `None` if they are of another device.
    pub(crate) fn restore(&self, saved: &SavedNamespaces) -> Option<()> {
        let mut state = self.state_mut();
        let (made_with, lives) = (state.made_with.clone(), saved.lives.clone());
        let mut restored = State { made_with, lives, ..State::default() };
        restored.free = restored.made_with.iter().filter_map(Namespace::run).collect();
        restored.free.sort_by_key(BlockRun::place);
        restored.free_zones = restored.made_with.iter().filter_map(Namespace::zones).collect();
        for (nsid, saved) in &saved.namespaces {
            let at = (*nsid as usize).checked_sub(1).filter(|at| *at < NAMESPACES_MAX as usize)?;
            let namespace = restored.restore(*nsid, *saved)?;
            let len = restored.slots.len().max(at + 1);
            restored.slots.resize(len, Slot::Free);
            restored.slots[at] = Slot::there(namespace);
        }
        *state = restored;
        Some(())
    }
}

impl State {
    fn save(&self, nsid: u32, namespace: &Namespace) -> Option<SavedNamespace> {
        Some(match namespace {
            Namespace::Kv(_) => SavedNamespace::Kv,
            Namespace::Block(_) => {
                let run = self.runs.get(&nsid)?;
                let is_of = |medium: &Namespace| medium.run().is_some_and(|all| all.has(run));
                let of = self.made_with.iter().position(is_of)?;
                SavedNamespace::Block { of, first: run.first(), count: run.count() }
            }
            Namespace::Zoned(zones) => {
                let is_it = |medium: &Namespace| {
                    medium.zones().is_some_and(|medium| Arc::ptr_eq(&medium, zones))
                };
                SavedNamespace::Zoned { of: self.made_with.iter().position(is_it)? }
            }
        })
    }

    fn restore(&mut self, nsid: u32, saved: SavedNamespace) -> Option<Namespace> {
        match saved {
            SavedNamespace::Kv => {
                let is_kv = |namespace: &&Namespace| matches!(namespace, Namespace::Kv(_));
                self.made_with.iter().find(is_kv).cloned()
            }
            SavedNamespace::Block { of, first, count } => {
                let all = self.made_with.get(of)?.run()?;
                let wanted = all.part(first, count)?;
                let at = self.free.iter().position(|run| run.has(&wanted))?;
                for rest in self.free.swap_remove(at).without(&wanted) {
                    self.give_back(rest);
                }
                let blocks = wanted.blocks();
                self.runs.insert(nsid, wanted);
                Some(Namespace::Block(blocks))
            }
            SavedNamespace::Zoned { of } => {
                let wanted = self.made_with.get(of)?.zones()?;
                let is_it = |zones: &Arc<Zones>| Arc::ptr_eq(zones, &wanted);
                let at = self.free_zones.iter().position(is_it)?;
                Some(Namespace::Zoned(self.free_zones.swap_remove(at)))
            }
        }
    }
}
