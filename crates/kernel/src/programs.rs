use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use aya::maps::{Array, HashMap, Map, MapData, RingBuf};
use aya::programs::{CgroupSockopt, Iter, ProgramFd, SockOps};
use aya::{Btf, Ebpf, EbpfLoader};
use sweetspot_linux::bpf::{self, AttachType};
use sweetspot_linux::cgroup::Cgroup;
use sweetspot_linux::clock;
use sweetspot_linux::namespace::NetworkNamespace;
use sweetspot_linux::processes;
use sweetspot_units::Bytes;

use crate::command::{CommandWords, SettingsWords, Watch, lease, settings};
use crate::connections::{Connections, LEASE, Paths};
use crate::error::{KernelError, chain};
use crate::host;

/// The names of the programs in bpf/tune.bpf.c.
const OPS_PROGRAM: &str = "sweetspot_ops";
const SET_PROGRAM: &str = "sweetspot_set";
const LIFT_PROGRAM: &str = "sweetspot_lift";
const FIND_PROGRAM: &str = "sweetspot_find";

type Settings = Array<MapData, SettingsWords>;

/// The compiled programs; `make bpf` builds them from bpf/tune.bpf.c. They are little-endian, like nearly every machine.
#[cfg(target_endian = "little")]
static OBJECT: &[u8] = aya::include_bytes_aligned!("../bpf/tune.bpf.o");
/// Empty elsewhere; [`probe::lacking`](crate::probe::lacking) reports the byte order.
#[cfg(target_endian = "big")]
static OBJECT: &[u8] = &[];

/// The programs in the kernel, and the means to undo their effects.
///
/// If they are loaded before a fork, either process can call [`SocketPrograms::undo`].
pub struct SocketPrograms {
    ebpf: Ebpf,
    settings: Settings,
    attached: Vec<Cgroup>,
}

impl SocketPrograms {
    /// Loads the event programs. Nothing is sampled before [`SocketPrograms::attach`], and nothing is limited before
    /// [`Connections::renew`].
    pub fn load(watch: Watch) -> Result<(SocketPrograms, Connections), KernelError> {
        if let Some(finding) = host::lacking() {
            return Err(KernelError::Missing(finding.to_string()));
        }
        let namespace =
            processes::pid_namespace().map_err(KernelError::at("reading the PID namespace"))?;
        let mut loader = EbpfLoader::new();
        let mut ebpf = loader.override_global("pid_namespace", &namespace, true).load(OBJECT)?;
        load::<SockOps>(&mut ebpf, OPS_PROGRAM)?
            .load()
            .map_err(KernelError::refused(OPS_PROGRAM))?;
        load::<CgroupSockopt>(&mut ebpf, SET_PROGRAM)?
            .load()
            .map_err(KernelError::refused(SET_PROGRAM))?;
        let (mut shared, again) = two_handles(map(&mut ebpf, "settings")?)?;
        // There is no lease yet, so its end is set to the present. A lease that ended long ago would count as abandoned, and
        // connections that begin before the first renewal would not be followed.
        shared.set(0, settings(&watch, clock::now(), 0), 0)?;
        let commands: HashMap<_, u64, CommandWords> = map(&mut ebpf, "commands")?.try_into()?;
        let paths: Paths = map(&mut ebpf, "paths")?.try_into()?;
        let upload_paths: Paths = map(&mut ebpf, "upload_paths")?.try_into()?;
        let announcements: RingBuf<_> = map(&mut ebpf, "announcements")?.try_into()?;
        let samples: RingBuf<_> = map(&mut ebpf, "samples")?.try_into()?;
        let records = [announcements, samples];
        let connections = Connections::new(watch, again, commands, [paths, upload_paths], records);
        Ok((SocketPrograms { ebpf, settings: shared, attached: Vec::new() }, connections))
    }

    /// Attaches the programs to `cgroup`: from then on they see all connections that begin in it or below it. Programs left
    /// there by a killed tuner are removed; a running tuner causes [`KernelError::Busy`].
    pub fn attach(&mut self, cgroup: &Cgroup) -> Result<(), KernelError> {
        // Renewed before attaching: another tuner that starts at the same time must not mistake these programs for ones left by a
        // killed tuner.
        let mut words = self.settings.get(&0, 0)?;
        words[0] = (clock::now() + LEASE).as_nanos();
        self.settings.set(0, words, 0)?;
        clear(cgroup)?;
        let kept = cgroup.try_clone().map_err(KernelError::at("duplicating"))?;
        for (program, at) in self.attachable()? {
            bpf::attach(cgroup, program.as_fd(), at)
                .map_err(|source| KernelError::Attach { path: cgroup.path().to_owned(), source })?;
        }
        self.attached.push(kept);
        Ok(())
    }

    /// Also finds connections that already exist, in the network namespaces of this thread and of the attached cgroups'
    /// processes. Returns whether the kernel lets the programs follow all of them, as Linux does since 6.12
    /// (TCP_BPF_SOCK_OPS_CB_FLAGS).
    pub fn find_present(&mut self) -> Result<bool, KernelError> {
        Ok(self.iterate(FIND_PROGRAM)? == 0)
    }

    /// Lifts every limit, also on idle connections, and detaches the programs. May be called again.
    pub fn undo(&mut self) {
        // The lease ends first, so that no segment sets a limit again in the meantime.
        if let Ok(mut words) = self.settings.get(&0, 0) {
            words[0] = 0;
            let _ = self.settings.set(0, words, 0);
        }
        let _ = self.iterate(LIFT_PROGRAM);
        let programs = self.attachable().unwrap_or_default();
        for cgroup in self.attached.drain(..) {
            for (program, at) in &programs {
                let _ = bpf::detach(&cgroup, program.as_fd(), *at);
            }
        }
    }

    fn attachable(&self) -> Result<Vec<(ProgramFd, AttachType)>, KernelError> {
        [(OPS_PROGRAM, AttachType::SockOps), (SET_PROGRAM, AttachType::SetSockOpt)]
            .into_iter()
            .map(|(name, at)| {
                let program = self.ebpf.program(name).and_then(|program| program.fd().ok());
                let program = program.ok_or_else(|| missing(name))?;
                let program = program.try_clone().map_err(KernelError::at("duplicating"))?;
                Ok((program, at))
            })
            .collect()
    }

    /// Runs an iterator over all TCP sockets in the network namespaces of this thread and of the attached cgroups' processes.
    /// Returns the number of bytes that it wrote.
    fn iterate(&mut self, name: &'static str) -> Result<usize, KernelError> {
        let mut written = self.walk(name)?;
        for namespace in self.other_namespaces() {
            // A namespace may be inaccessible; its connections are restored at their next segments.
            written += namespace.run(|| self.walk(name)).ok().and_then(Result::ok).unwrap_or(0);
        }
        Ok(written)
    }

    /// The network namespaces of the attached cgroups' processes, except this thread's.
    fn other_namespaces(&self) -> Vec<NetworkNamespace> {
        let number = |path: String| fs::metadata(path).ok().map(|metadata| metadata.ino());
        let mut seen = BTreeSet::from([number("/proc/thread-self/ns/net".to_owned())]);
        let pids = self.attached.iter().flat_map(Cgroup::processes);
        pids.filter(|pid| seen.insert(number(format!("/proc/{pid}/ns/net"))))
            .filter_map(|pid| NetworkNamespace::of_process(pid).ok())
            .collect()
    }

    /// Loads a program that iterates over connections.
    fn iterator(&mut self, name: &'static str) -> Result<&mut Iter, KernelError> {
        let program = load::<Iter>(&mut self.ebpf, name)?;
        if program.fd().is_err() {
            let btf = Btf::from_sys_fs().map_err(|error| KernelError::Load(chain(&error)))?;
            program.load("tcp", &btf).map_err(KernelError::refused(name))?;
        }
        Ok(program)
    }

    fn walk(&mut self, name: &'static str) -> Result<usize, KernelError> {
        let program = self.iterator(name)?;
        let link = program.attach().map_err(KernelError::refused(name))?;
        let link = program.take_link(link).map_err(KernelError::refused(name))?;
        let mut file: File = link.into_file().map_err(|error| KernelError::Load(chain(&error)))?;
        // Reading the iterator runs it.
        let mut written = Vec::new();
        file.read_to_end(&mut written).map_err(KernelError::at("walking the connections"))
    }
}

impl fmt::Debug for SocketPrograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketPrograms").field("attached", &self.attached).finish_non_exhaustive()
    }
}

/// Detaches programs that a killed tuner left on `cgroup`. Fails if a program there or on a parent has a current lease.
fn clear(cgroup: &Cgroup) -> Result<(), KernelError> {
    for program in aya::programs::loaded_programs().flatten() {
        let at = match program.name_as_str() {
            Some(OPS_PROGRAM) => AttachType::SockOps,
            Some(SET_PROGRAM) => AttachType::SetSockOpt,
            _ => continue,
        };
        let here = |inherited| {
            bpf::attached(cgroup, at, inherited).is_ok_and(|ids| ids.contains(&program.id()))
        };
        let held = lease_of(&program);
        if let Some(Lease { dry_run }) = held
            && here(true)
        {
            let path = cgroup.path().to_owned();
            return Err(KernelError::Busy { path, program: program.id(), dry_run });
        }
        if held.is_none() && here(false) {
            let left = bpf::program(program.id()).map_err(KernelError::at("opening a program"))?;
            bpf::detach(cgroup, left, at).map_err(KernelError::at("detaching what was left"))?;
        }
    }
    Ok(())
}

/// The lease of a running tuner.
#[derive(Debug, Clone, Copy)]
struct Lease {
    dry_run: bool,
}

/// The lease of this program's tuner; `None` if it has ended or cannot be read.
fn lease_of(program: &aya::programs::ProgramInfo) -> Option<Lease> {
    let words = maps_of(program).find_map(|map| {
        let settings: Array<_, SettingsWords> = map.try_into().ok()?;
        settings.get(&0, 0).ok()
    })?;
    let (ends, dry_run) = lease(words);
    (clock::now() < ends).then_some(Lease { dry_run })
}

fn maps_of(program: &aya::programs::ProgramInfo) -> impl Iterator<Item = Map> {
    let ids = program.map_ids().ok().flatten().unwrap_or_default();
    ids.into_iter().filter_map(|id| Map::from_map_data(MapData::from_id(id).ok()?).ok())
}

/// The window limit that a running tuner holds on the connection with this cookie. `None` also without the privilege to list
/// BPF programs.
pub fn held_window(cookie: u64) -> Option<Bytes> {
    let programs = aya::programs::loaded_programs().flatten();
    let mut tuners = programs.filter(|program| {
        program.name_as_str() == Some(OPS_PROGRAM) && lease_of(program).is_some()
    });
    tuners.find_map(|program| {
        let commands: HashMap<_, u64, CommandWords> =
            maps_of(&program).find_map(|map| map.try_into().ok())?;
        let limit = commands.get(&cookie, 0).ok()?[0];
        (limit > 0).then_some(Bytes::new(limit))
    })
}

fn load<'a, P>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut P, KernelError>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program>,
{
    let program = ebpf.program_mut(name).ok_or_else(|| missing(name))?;
    program.try_into().map_err(|_| missing(name))
}

fn map(ebpf: &mut Ebpf, name: &'static str) -> Result<Map, KernelError> {
    ebpf.take_map(name).ok_or_else(|| missing(name))
}

/// Two handles to one map: the process that undoes everything may differ from the one that renews the lease.
fn two_handles(map: Map) -> Result<(Settings, Settings), KernelError> {
    let Map::Array(data) = map else { return Err(missing("settings")) };
    let again = data.fd().as_fd().try_clone_to_owned().map_err(KernelError::at("duplicating"))?;
    let again = Map::Array(MapData::from_fd(again)?);
    Ok((Map::Array(data).try_into()?, again.try_into()?))
}

fn missing(name: &'static str) -> KernelError {
    KernelError::Load(format!("the object has no {name}"))
}
