use crate::kind::Kind;
use crate::outcome::Finding;
use base::Nanos;
use clock::Stages;
use std::num::NonZeroU32;

/// An operation of several commands: a first one, then those that follow from it, submitted
/// together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compound {
    pub(super) kind: Kind,
    pub(super) due: Nanos,
    /// The number of outstanding commands.
    pub(super) outstanding: usize,
    /// The stages before the present commands were due.
    pub(super) before: Stages,
    /// The first failure.
    pub(super) finding: Finding,
}

impl Compound {
    /// Returns an operation before the submission of its first command.
    pub(super) fn new(kind: Kind, due: Nanos) -> Self {
        Self { kind, due, outstanding: 1, before: Stages::default(), finding: Finding::Right }
    }

    /// Ends one of its commands with `finding`.
    pub(super) fn end_part(&mut self, finding: Finding) {
        self.outstanding -= 1;
        if self.finding.is_fine() {
            self.finding = finding;
        }
    }

    /// Begins `count` commands that follow from one that spent `stages`.
    pub(super) fn begin_parts(&mut self, count: usize, stages: &Stages) {
        self.outstanding += count;
        self.before += stages;
    }
}

/// The outstanding compounds.
#[derive(Debug, Default)]
pub(super) struct Compounds {
    places: Vec<Compound>,
    free: Vec<Place>,
}

/// The place of a compound: one more than its index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(NonZeroU32);

impl Place {
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl Compounds {
    pub(super) fn begin(&mut self, compound: Compound) -> Place {
        if let Some(place) = self.free.pop() {
            self.places[place.index()] = compound;
            return place;
        }
        self.places.push(compound);
        let count = u32::try_from(self.places.len()).ok().and_then(NonZeroU32::new);
        Place(count.expect("far fewer than 2^32 are outstanding"))
    }

    pub(super) fn at(&mut self, place: Place) -> &mut Compound {
        &mut self.places[place.index()]
    }

    /// Removes a compound and frees its place.
    pub(super) fn end(&mut self, place: Place) -> Compound {
        self.free.push(place);
        self.places[place.index()]
    }
}
