use std::fmt;

/// How this kernel lets a program limit the window that a live socket advertises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClampMethod {
    /// TCP_WINDOW_CLAMP alone; the kernel keeps autotuning the buffer.
    ClampAutotuned,
    /// SO_RCVBUF once, as large as `net.core.rmem_max` allows, then TCP_WINDOW_CLAMP.
    ClampLargeBuffer,
    /// SO_RCVBUF alone.
    BufferAlone,
}

impl fmt::Display for ClampMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ClampMethod::ClampAutotuned => "TCP_WINDOW_CLAMP over an autotuned buffer",
            ClampMethod::ClampLargeBuffer => "SO_RCVBUF at its largest, then TCP_WINDOW_CLAMP",
            ClampMethod::BufferAlone => "SO_RCVBUF alone",
        })
    }
}
