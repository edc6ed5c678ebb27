use crate::zones::content::{Content, SavedContent};
use crate::zones::states::States;
use crate::zones::{Zones, ZonesConfig};
use media::Media;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The saved state of idle zones, including the protected memory.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedZones {
    states: States,
    contents: Vec<Option<SavedContent>>,
    /// Bytes in the buffer, and number of pages ever closed.
    buffer: (u64, u64),
    next_fill: u64,
    has_saved: bool,
}

impl Zones {
    /// Saves the state. `None` while an operation is in progress.
    pub fn save_state(&self) -> Option<SavedZones> {
        let state = self.state();
        let buffer = state.buffer.save()?;
        let is_quiet = state.wanting.is_empty() && state.leaving.is_empty() && state.appends == 0;
        let contents = state.contents.iter().map(|content| Some(content.as_ref()?.save()));
        is_quiet.then(|| SavedZones {
            states: state.states.clone(),
            contents: contents.collect(),
            buffer,
            next_fill: state.next_fill,
            has_saved: state.has_saved,
        })
    }

    /// Restores the saved zones on the medium that was saved with them.
    pub fn restore_state(
        media: Arc<dyn Media>,
        config: ZonesConfig,
        saved: SavedZones,
    ) -> Arc<Self> {
        let zones = Self::on(media, config);
        {
            let mut state = zones.state();
            let contents = (0..).zip(saved.contents);
            let contents = contents.map(|(zone, content)| {
                content.map(|content| Arc::new(Content::restored(zone, content)))
            });
            state.contents = contents.collect();
            state.states = saved.states;
            state.buffer.restore(saved.buffer);
            state.next_fill = saved.next_fill;
            state.has_saved = saved.has_saved;
        }
        Arc::new(zones)
    }
}
