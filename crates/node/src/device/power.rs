use crate::device::Device;
use crate::device::error::DeviceError;
use crate::device::namespace::Namespace;
use base::Nanos;
use engine::Error;

/// The work of a device after a loss of power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerLoss {
    /// Pages programmed after the loss.
    pub saved_pages: u64,
    /// Pages of acknowledged data that the device failed to program: their content is lost.
    pub lost_pages: u64,
    /// Time until all data was saved or the energy was used up.
    pub time: Nanos,
}

impl Device {
    /// Stops the device: flushes all acknowledged data. If the flash has room, also writes a
    /// checkpoint that makes the next [`Device::open`] fast. Callers submit no commands afterwards.
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

    /// Simulates a loss of power: the device starts no new work, except to save acknowledged data
    /// from memory on its capacitors. Callers drop the reactor afterwards.
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
