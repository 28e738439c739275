use super::Sender;
use crate::config::SendMemory;

/// A send buffer in kernel memory, and the data that the application has written into it.
#[derive(Debug, Clone)]
pub(super) struct MemoryLimit {
    memory: SendMemory,
    /// One past the last number written.
    written: u64,
}

impl MemoryLimit {
    pub(super) fn new(memory: SendMemory) -> MemoryLimit {
        MemoryLimit { memory, written: 0 }
    }

    /// Packets that fit even if each is a segment of its own.
    pub(super) fn sure_packets(memory: SendMemory) -> u64 {
        (memory.limit.get() / (memory.payload + memory.overhead).get()).max(1)
    }

    /// The number of packets that fit in segments of `in_segment` packets.
    fn packets(&self, in_segment: u64) -> u64 {
        let segment = in_segment * self.memory.payload.get() + self.memory.overhead.get();
        (self.memory.limit.get() * in_segment / segment).max(1)
    }

    /// The application writes until the buffer is full, then sleeps until a third of it is free (`sk_stream_write_space`: the
    /// free part must be half of the queued one). Returns how far it has written.
    fn write(&mut self, una: u64, in_segment: u64) -> u64 {
        let holds = self.packets(in_segment);
        if 3 * self.written.saturating_sub(una) <= 2 * holds {
            self.written = una + holds;
        }
        self.written
    }
}

impl Sender {
    /// Lowers the limit to the kernel memory's capacity.
    #[cold]
    pub(super) fn limit_by_memory(&mut self) {
        let in_segment = if self.options.offload { self.segment_packets() } else { 1 };
        let Some(memory) = &mut self.memory else { return };
        let written = memory.write(self.una, in_segment);
        self.limit = self.limit.min(written.max(self.next));
    }
}
