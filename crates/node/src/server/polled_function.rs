use pcie::NvmeFunction;
use reactor::PolledMemory;
use std::rc::Rc;

/// A function whose doorbells in memory the reactor polls until this drops.
pub(super) struct PolledFunction(Rc<dyn PolledMemory>);

impl PolledFunction {
    /// Has the reactor on this thread poll the doorbells of `function`.
    pub(super) fn new(function: NvmeFunction) -> Self {
        function.set_polled();
        let memory: Rc<dyn PolledMemory> = Rc::new(Polled(function));
        reactor::poll(memory.clone());
        Self(memory)
    }
}

impl Drop for PolledFunction {
    fn drop(&mut self) {
        reactor::stop_polling(&self.0);
    }
}

struct Polled(NvmeFunction);

impl PolledMemory for Polled {
    fn look(&self) -> bool {
        self.0.look()
    }

    fn can_arm(&self) -> bool {
        self.0.can_arm()
    }

    fn arm(&self) {
        self.0.arm();
    }
}
