use serde::{Deserialize, Serialize};

/// An end of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// `sweetspot send`.
    Sender,
    /// `sweetspot serve`.
    Receiver,
}

impl Role {
    /// The other end's role.
    pub fn other(self) -> Role {
        match self {
            Role::Sender => Role::Receiver,
            Role::Receiver => Role::Sender,
        }
    }
}
