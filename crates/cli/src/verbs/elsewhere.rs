//! Replaces the verbs that need Linux on other systems. With any options, each prints that it needs
//! Linux.

/// A module for each verb, with the name of its arguments and the verb's description.
macro_rules! verbs {
    ($($verb:ident $arguments:ident $about:literal)*) => { $(
        pub mod $verb {
            #[doc = $about]
            #[derive(Debug, clap::Args)]
            pub struct $arguments {
                /// The arguments of the verb on Linux
                #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
                typed: Vec<std::ffi::OsString>,
            }

            pub fn run(arguments: $arguments) -> crate::verbs::Ending {
                drop(arguments.typed);
                Err(super::needs_linux(stringify!($verb)).into())
            }
        }
    )* };
}

verbs! {
    copy CopyArguments "Copy files and directories to and from a host that ssh reaches (needs Linux)"
    demo DemoArguments "Compare ways to size the window on this machine's kernel (needs Linux)"
    emulate EmulateArguments "Emulate a path between two network namespaces (needs Linux)"
    measure MeasureArguments "Measure the path to another host (needs Linux)"
    receive ReceiveArguments "Receive files from `sweetspot send` (needs Linux)"
    send SendArguments "Send files and directories (needs Linux)"
    serve ServeArguments "Receive files, or serve named clients (needs Linux)"
    top TopArguments "Show this host's TCP connections and the limit of each (needs Linux)"
    tune TuneArguments "Tune the connections of other programs (needs Linux)"
    advise_host AdviseHostArguments "The settings that limit a flow on this host (needs Linux)"
}

/// The line that `what` prints on this system.
pub fn needs_linux(what: &str) -> String {
    format!(
        "{what}: needs Linux, whose TCP it reads or sets; on this system you can use advise window, advise router, \
         diagnose FILE, run, sweep, report and ui"
    )
}
