//! Opening a model on a device, with progress on standard error.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::Done;
use super::args::{BuildKernelsArgs, EngineArgs};
use crate::device::{Card, DeviceInfo, Module, cache, devices, kernels};
use crate::exec::Engine;
use crate::load::{Model, Progress, TableOptions, Tables, check_sums};
use crate::plan::{Options, Plan};

/// A device as the user names it.
pub fn choose_device(wanted: Option<&str>) -> Result<DeviceInfo> {
    let devices = devices()?;
    let found = match wanted {
        None => devices.iter().find(|device| !device.is_cpu).or_else(|| devices.first()),
        Some("cpu") => devices.iter().find(|device| device.is_cpu),
        Some("gpu") => devices.iter().find(|device| !device.is_cpu),
        Some(number) => number.parse::<usize>().ok().and_then(|number| devices.get(number)),
    };
    if let Some(device) = found {
        return Ok(device.clone());
    }
    let list: Vec<String> = devices
        .iter()
        .enumerate()
        .map(|(i, device)| format!("\n  {i}: {} ({})", device.name, device.backend))
        .collect();
    let list = if list.is_empty() { "\n  none".to_owned() } else { list.concat() };
    match wanted {
        Some(wanted) => {
            bail!("--device: expected a number of this list, `cpu` or `gpu`, got `{wanted}`; devices:{list}")
        }
        None => bail!("no usable device: expected a Level Zero GPU, a CUDA GPU or the OpenCL CPU device, found:{list}"),
    }
}

/// Opens a model file.
pub fn open_model(path: &Path) -> Result<Model> {
    let model = Model::open(path)?;
    for warning in &model.bound().warnings {
        eprintln!("warning: {}: {warning}", path.display());
    }
    Ok(model)
}

/// Loads a model onto the device that the arguments name.
pub fn open_engine(model: Model, args: &EngineArgs, context: usize) -> Result<(Engine, Duration)> {
    let begin = Instant::now();
    if let Some(list) = &args.check_sums {
        let mut reporter = Reporter::new(String::new());
        check_sums(model.file(), list, &mut |progress| reporter.show(progress)).context("--check-sums")?;
        reporter.done();
    }
    let model = Arc::new(model.narrowed()?);
    let tables = TableOptions { ngram_file: args.ngram_table.clone(), ngram_cache_bytes: args.ngram_cache };
    let tables = Tables::open(model.file(), model.bound(), &tables)?;
    let device = choose_device(args.device.as_deref())?;
    let mut reporter = Reporter::new(format!("{} ({})", device.name, device.backend));
    let card = Card::open(device.index)?;
    let options = Options { context, chunk: args.chunk.min(context), kv: args.kv.into() };
    let plan = Engine::plan_for(&model, &card, options)?;
    let builders = Builders::start(&device, &plan);
    let engine = Engine::open(model, tables, card, plan, &mut |progress| reporter.show(progress))?;
    drop(builders);
    reporter.done();
    if let (count @ 1.., bytes) = engine.plan().narrowed() {
        eprintln!("{count} matrices hold BF16 values in F32: kept as BF16, {bytes} bytes less");
    }
    Ok((engine, begin.elapsed()))
}

/// Processes that build kernel modules into the cache folder beside this one, where the device's compiler takes one at a time in a process.
/// They only save time: what they do not deliver is built here.
struct Builders(Vec<Child>);

impl Builders {
    fn start(device: &DeviceInfo, plan: &Plan) -> Builders {
        let Some(folder) = cache::folder().filter(|_| device.backend == "opencl") else { return Builders(Vec::new()) };
        let missing = plan
            .modules
            .iter()
            .filter(|name| kernels::find(name).is_some_and(|code| !cache::module_path(&folder, device, code).exists()));
        let missing: Vec<&String> = missing.collect();
        let processes = std::thread::available_parallelism().map_or(1, usize::from).min(missing.len());
        let spawn = |i: usize| {
            let mut names = missing.clone();
            names.rotate_left(i * missing.len() / processes);
            let mut command = std::process::Command::new(std::env::current_exe().ok()?);
            command.arg("build-kernels").arg("--device").arg(device.index.to_string()).args(names);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
        };
        Builders((1..processes).filter_map(spawn).collect())
    }
}

impl Drop for Builders {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended already cannot be killed, and needs not be.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Builds modules into the cache folder.
pub fn build_kernels(args: &BuildKernelsArgs) -> Result<Done> {
    let device = choose_device(args.device.as_deref())?;
    let card = Card::open(device.index)?;
    for name in &args.modules {
        let Some(code) = kernels::find(name) else { bail!("kernel module `{name}` is not in this build") };
        Module::new(&card, code, cache::folder().as_deref())?;
    }
    Ok(Done::Finished)
}

/// Says what the program waits for: on a terminal in one changing line, else only when it takes long.
struct Reporter {
    device: String,
    begin: Instant,
    shown: Option<Instant>,
    terminal: bool,
    kernels: (usize, usize),
    weights: (u64, u64),
    read_bytes: u64,
    /// Bytes hashed, if that is what goes on.
    sums: Option<(u64, u64)>,
}

impl Reporter {
    fn new(device: String) -> Reporter {
        let terminal = std::io::stderr().is_terminal();
        Reporter {
            device,
            begin: Instant::now(),
            shown: None,
            terminal,
            kernels: (0, 0),
            weights: (0, 0),
            read_bytes: 0,
            sums: None,
        }
    }

    fn show(&mut self, progress: Progress) {
        match progress {
            Progress::Kernels { done, total } => self.kernels = (done, total),
            Progress::Weights { done, total, read_bytes } => {
                (self.weights, self.read_bytes) = ((done, total), read_bytes);
            }
            Progress::Sums { done, total } => (self.sums, self.read_bytes) = (Some((done, total)), done),
        }
        let wait = if self.terminal { Duration::from_millis(100) } else { Duration::from_secs(2) };
        if self.shown.unwrap_or(self.begin).elapsed() < wait {
            return;
        }
        self.shown = Some(Instant::now());
        let (kernels, weights) = (self.kernels, self.weights);
        let rate = self.read_bytes as f64 / self.begin.elapsed().as_secs_f64() / f64::from(1 << 20);
        let text = match self.sums {
            Some((done, total)) => format!("checking sums: {}/{} MiB, {rate:.0} MiB/s", done >> 20, total >> 20),
            None => format!(
                "loading onto {}: kernel modules {}/{} (built once, then kept), weights {}/{} MiB, {rate:.0} MiB/s",
                self.device,
                kernels.0,
                kernels.1,
                weights.0 >> 20,
                weights.1 >> 20
            ),
        };
        if self.terminal {
            eprint!("\r\x1b[K{text}");
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{text}");
        }
    }

    fn done(&self) {
        if self.terminal && self.shown.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
