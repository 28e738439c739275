use std::sync::Arc;

use sweetspot_linux::process;
use sweetspot_linux::tcp::ClampMethod;

use crate::files::incoming::Bounds;
use crate::observer::FileLog;
use crate::options::ReceiveOptions;
use crate::{Result, TransferError};

pub(crate) struct ReceiveConfig {
    pub options: ReceiveOptions,
    pub clamp_method: ClampMethod,
    pub bounds: Bounds,
}

impl ReceiveConfig {
    /// Adds this kernel's method of limiting the window to the options.
    pub fn new(options: ReceiveOptions) -> Result<ReceiveConfig> {
        if options.owners && process::effective_user() != 0 {
            return Err(TransferError::OwnersNeedRoot);
        }
        let clamp_method =
            ClampMethod::find().map_err(TransferError::system("testing the receive window"))?;
        Ok(ReceiveConfig { options, clamp_method, bounds: Bounds::default() })
    }

    /// The same configuration with this file log.
    pub fn with_file_log(self: &Arc<Self>, log: Option<Arc<dyn FileLog>>) -> Arc<ReceiveConfig> {
        if log.is_none() {
            return Arc::clone(self);
        }
        let bounds = Bounds { log, ..self.bounds.clone() };
        let (options, clamp_method) = (self.options.clone(), self.clamp_method);
        Arc::new(ReceiveConfig { options, clamp_method, bounds })
    }
}
