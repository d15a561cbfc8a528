//! Opening a model on a device, with progress on standard error.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::args::EngineArgs;
use crate::device::{Card, DeviceInfo, devices};
use crate::exec::Engine;
use crate::load::{Model, Progress};
use crate::plan::Options;

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
    let list: Vec<String> = devices.iter().enumerate().map(|(i, device)| format!("\n  {i}: {} ({})", device.name, device.backend)).collect();
    let list = if list.is_empty() { "\n  none".to_owned() } else { list.concat() };
    match wanted {
        Some(wanted) => bail!("--device: expected a number of this list, `cpu` or `gpu`, got `{wanted}`; devices:{list}"),
        None => bail!("no usable device: expected a Level Zero GPU, a CUDA GPU or the OpenCL CPU device, found:{list}"),
    }
}

/// Opens a model file.
pub fn open_model(path: &Path) -> Result<Arc<Model>> {
    let model = Model::open(path)?;
    for warning in &model.bound().warnings {
        eprintln!("warning: {}: {warning}", path.display());
    }
    Ok(Arc::new(model))
}

/// Loads a model onto the device that the arguments name.
pub fn open_engine(model: Arc<Model>, args: &EngineArgs, context: usize) -> Result<(Engine, Duration)> {
    let begin = Instant::now();
    let device = choose_device(args.device.as_deref())?;
    let mut reporter = Reporter::new(format!("{} ({})", device.name, device.backend));
    let card = Card::open(device.index)?;
    let options = Options { context, chunk: args.chunk.min(context), kv: args.kv.into() };
    let engine = Engine::open(model, card, options, &mut |progress| reporter.show(progress))?;
    reporter.done();
    Ok((engine, begin.elapsed()))
}

/// Says what the program waits for: on a terminal in one changing line, else only when it takes long.
struct Reporter {
    device: String,
    begin: Instant,
    shown: Option<Instant>,
    terminal: bool,
    kernels: (usize, usize),
    weights: (u64, u64),
}

impl Reporter {
    fn new(device: String) -> Reporter {
        let terminal = std::io::stderr().is_terminal();
        Reporter { device, begin: Instant::now(), shown: None, terminal, kernels: (0, 0), weights: (0, 0) }
    }

    fn show(&mut self, progress: Progress) {
        match progress {
            Progress::Kernels { done, total } => self.kernels = (done, total),
            Progress::Weights { done, total } => self.weights = (done, total),
        }
        let wait = if self.terminal { Duration::from_millis(100) } else { Duration::from_secs(2) };
        if self.shown.unwrap_or(self.begin).elapsed() < wait {
            return;
        }
        self.shown = Some(Instant::now());
        let (kernels, weights) = (self.kernels, self.weights);
        let text = format!(
            "loading onto {}: kernel modules {}/{} (built once, then kept), weights {}/{} MiB",
            self.device,
            kernels.0,
            kernels.1,
            weights.0 >> 20,
            weights.1 >> 20
        );
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
