use crate::device::{Device, DeviceError, Namespace};
use base::Nanos;
use engine::{Error, Recovery};

/// What opening a device took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// What opening the store took, if there is one.
    pub recovery: Option<Recovery>,
    /// Pages that no loss of power cut off and that could not be read, of parts that were being
    /// filled: of what they held some may be lost, and something older be in its place.
    pub lost_pages: u64,
    /// Time for all namespaces, one after the other, on the device's clock.
    pub time: Nanos,
}

/// What a device did after its power was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerLoss {
    /// Pages that were programmed since.
    pub saved_pages: u64,
    /// Pages of what had been answered that could not be programmed any more: it is lost.
    pub lost_pages: u64,
    /// Time until all was saved, or nothing more could be.
    pub time: Nanos,
}

impl Device {
    /// Stops in good order: all that was answered is on the flash, and with it, where there is room
    /// for it, what the next [`Device::open`] needs to be fast. Nothing may be asked from here on.
    pub async fn stop(&self) -> Result<(), DeviceError> {
        self.flush().await?;
        if let Some(store) = self.kv() {
            match store.checkpoint().await {
                Ok(_) | Err(Error::NoCheckpoint | Error::CapacityExceeded) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for namespace in &self.namespaces {
            if let Namespace::Zoned(zones, _) = namespace {
                zones.save_open_pages().await;
            }
        }
        Ok(())
    }

    /// The power is lost: nothing more is begun but to save, on capacitors, what was answered and
    /// is in memory only. The reactor is to be dropped after that.
    pub async fn lose_power(&self) -> PowerLoss {
        let start = clock::now();
        let programs = self.figures().nand.programs;
        self.nand.run_on_capacitors(self.capacitor_pages.unwrap_or(u64::MAX));
        let mut lost_pages = 0;
        if let Some(store) = self.kv() {
            lost_pages += store.save_host_pages().await;
        }
        for namespace in &self.namespaces {
            lost_pages += match namespace {
                Namespace::Kv(_) => 0,
                Namespace::Block(layer) => layer.save_open_pages().await.lost_pages,
                Namespace::Zoned(zones, _) => zones.save_open_pages().await.lost_pages,
            };
        }
        let saved_pages = self.figures().nand.programs - programs;
        PowerLoss { saved_pages, lost_pages, time: clock::now() - start }
    }
}
