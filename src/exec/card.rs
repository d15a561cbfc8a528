//! One card at work: its memory, its queues and its kernels.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::EngineError;
use super::experts::Experts;
use super::launch::{Kernels, Launcher};
use crate::device::kernels::{self, ModuleCode};
use crate::device::{self, Arena, Card, DeviceError, Graph, MemoryKind, Module, Queue, Span, Status};
use crate::load::{self, Model, Progress, UploadError};
use crate::plan::{CardPlan, Plan, Region};
use crate::residency::Profile;

/// Fields drop in their order: what was recorded and queued before the memory that it uses.
pub(super) struct CardRun {
    pub number: usize,
    /// A step of one token, recorded once.
    pub decode: Option<Graph>,
    pub experts: Option<Experts>,
    /// Different experts of the layer that was routed last, while operations are measured.
    pub experts_chosen: usize,
    kernels: Kernels,
    /// Computes, in order.
    queue: Queue,
    /// Copies experts meanwhile.
    copies: Queue,
    arenas: Vec<Arena>,
    addresses: Vec<u64>,
    card: Card,
}

impl CardRun {
    fn new(number: usize, card: Card, plan: &CardPlan) -> Result<CardRun, EngineError> {
        let on_card = |problem| EngineError::Card { card: number, problem };
        let (queue, copies) = (Queue::new(&card).map_err(on_card)?, Queue::new(&card).map_err(on_card)?);
        let mut arenas = Vec::with_capacity(plan.ledger.arenas.len());
        for (kind, bytes) in &plan.ledger.arenas {
            let memory = if kind.on_host() { MemoryKind::Host } else { MemoryKind::Device };
            arenas.push(Arena::new(&card, *bytes, memory).map_err(on_card)?);
        }
        let addresses = arenas.iter().map(|arena| arena.whole().ptr().expose_provenance() as u64).collect();
        Ok(CardRun {
            number,
            decode: None,
            experts: None,
            experts_chosen: 0,
            kernels: Kernels::default(),
            queue,
            copies,
            arenas,
            addresses,
            card,
        })
    }

    pub fn card(&self) -> &Card {
        &self.card
    }

    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    pub fn copies(&self) -> &Queue {
        &self.copies
    }

    pub fn launcher<'a>(&'a self, plan: &'a Plan, number: usize) -> Launcher<'a> {
        Launcher { plan, number, arenas: &self.addresses, kernels: &self.kernels, queue: &self.queue }
    }

    /// Names the card in an error.
    pub fn named<T>(&self, result: Result<T, DeviceError>) -> Result<T, EngineError> {
        result.map_err(|problem| EngineError::Card { card: self.number, problem })
    }

    /// The first `bytes` bytes of a region.
    pub fn span(&self, region: Region, bytes: u64) -> Result<Span, EngineError> {
        self.named(self.arenas[region.arena].span(region.offset, bytes))
    }

    /// The device's address of a region.
    pub fn address(&self, region: Region) -> u64 {
        self.addresses[region.arena] + region.offset
    }

    /// Uploads to the start of a region, and waits.
    pub fn put(&self, region: Region, values: &[u8]) -> Result<(), EngineError> {
        let span = self.span(region, values.len() as u64)?;
        self.named(self.queue.upload(&span, values))
    }

    /// Downloads the start of a region, and waits for all work.
    pub fn get(&self, values: &mut [u8], region: Region) -> Result<(), EngineError> {
        let span = self.span(region, values.len() as u64)?;
        self.named(self.queue.download(values, &span))
    }

    /// Enqueues a copy between two regions of the card.
    pub fn copy(&self, to: Region, from: Region) -> Result<(), EngineError> {
        let (to, from) = (self.span(to, to.bytes)?, self.span(from, from.bytes)?);
        self.named(self.queue.copy(&to, &from))
    }

    /// Enqueues zeros.
    pub fn fill(&self, region: Region) -> Result<(), EngineError> {
        let span = self.span(region, region.bytes)?;
        self.named(self.queue.fill(&span, 0))
    }

    pub fn wait(&self) -> Result<(), EngineError> {
        self.named(self.queue.wait())
    }

    pub fn begin_graph(&self) -> Result<(), EngineError> {
        self.named(self.queue.begin_graph())?;
        for arena in &self.arenas {
            self.queue.keep(&arena.whole());
        }
        self.kernels.keep(&self.queue);
        Ok(())
    }

    pub fn end_graph(&self) -> Result<Graph, EngineError> {
        self.named(self.queue.end_graph())
    }

    pub fn launch_decode(&self) -> Result<(), EngineError> {
        match &self.decode {
            Some(graph) => self.named(self.queue.launch(graph)),
            None => Ok(()),
        }
    }

    /// Bytes of pinned host memory, which nothing on the card writes at the moment.
    pub fn host(&self, region: Region, bytes: usize) -> Result<&[u8], EngineError> {
        let (address, bytes) = self.host_address(region, bytes)?;
        // SAFETY: the range lies in a live host arena, and the caller has waited for the card's writes.
        Ok(unsafe { std::slice::from_raw_parts(address, bytes) })
    }

    /// Bytes of pinned host memory, which nothing on the card reads or writes at the moment.
    pub fn host_mut(&mut self, region: Region, bytes: usize) -> Result<&mut [u8], EngineError> {
        let (address, bytes) = self.host_address(region, bytes)?;
        // SAFETY: the range lies in a live host arena; the caller has waited for the card, and `&mut self` keeps other holders away.
        Ok(unsafe { std::slice::from_raw_parts_mut(address, bytes) })
    }

    /// Several regions of pinned host memory, which do not overlap and which nothing on the card reads or writes at the moment.
    pub fn host_parts(&mut self, regions: &[Region]) -> Result<Vec<&mut [u8]>, EngineError> {
        let part = |region: &Region| {
            let (address, bytes) = self.host_address(*region, region.bytes as usize)?;
            // SAFETY: as in `host_mut`; the regions do not overlap.
            Ok(unsafe { std::slice::from_raw_parts_mut(address, bytes) })
        };
        regions.iter().map(part).collect()
    }

    fn host_address(&self, region: Region, bytes: usize) -> Result<(*mut u8, usize), EngineError> {
        let span = self.span(region, bytes as u64)?;
        Ok((span.host_ptr().expect("the plan books this region in host memory"), bytes))
    }
}

/// Opens all cards of a plan: allocates, then builds kernels on threads of their own while this one uploads.
pub(super) fn open(
    model: &Model,
    plan: &Plan,
    cards: Vec<Card>,
    profile: Option<&Profile>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<CardRun>, EngineError> {
    let numbered = cards.into_iter().zip(&plan.cards).enumerate();
    let mut runs: Vec<CardRun> =
        numbered.map(|(number, (card, plan))| CardRun::new(number, card, plan)).collect::<Result<_, _>>()?;
    for run in &mut runs {
        run.experts = Experts::new(run, plan, &plan.cards[run.number], profile);
    }
    let codes: Vec<Vec<&ModuleCode>> = plan.cards.iter().map(module_codes).collect::<Result<_, _>>()?;
    let total = codes.iter().map(Vec::len).sum();
    let done = AtomicUsize::new(0);
    let devices: Vec<Card> = runs.iter().map(|run| run.card.clone()).collect();
    // One card after another: equal cards find in the cache what the first one built.
    let build = || -> Result<Vec<Vec<Module>>, EngineError> {
        let build = |(number, card): (usize, &Card)| {
            build_modules(card, &codes[number], &done).map_err(|problem| EngineError::Card { card: number, problem })
        };
        devices.iter().enumerate().map(build).collect()
    };
    let modules = std::thread::scope(|scope| {
        let builder = scope.spawn(build);
        let mut report = |step: Progress| {
            progress(Progress::Kernels { done: done.load(Ordering::Relaxed), total });
            progress(step);
        };
        let uploaded = upload(model, plan, &runs, &mut report);
        while !builder.is_finished() {
            std::thread::sleep(Duration::from_millis(5));
            progress(Progress::Kernels { done: done.load(Ordering::Relaxed), total });
        }
        let modules = builder.join().expect("building does not panic");
        uploaded.and(modules)
    })?;
    for (run, card) in runs.iter().zip(&plan.cards) {
        run.upload_tables(card)?;
    }
    for (run, modules) in runs.iter_mut().zip(modules) {
        for module in modules {
            let code = kernels::find(module.name()).expect("the module was built from this table");
            for name in code.kernels {
                let kernel = run.named(module.kernel(name))?;
                run.kernels.insert(module.name(), name, kernel);
            }
        }
    }
    Ok(runs)
}

fn upload(model: &Model, plan: &Plan, runs: &[CardRun], progress: &mut dyn FnMut(Progress)) -> Result<(), EngineError> {
    let slot = |run: &CardRun, layer: usize, expert: usize| {
        run.experts.as_ref().and_then(|experts| experts.slot(layer, expert))
    };
    let slots: Vec<_> = runs.iter().map(|run| move |layer: usize, expert: usize| slot(run, layer, expert)).collect();
    let targets: Vec<load::Target<'_>> = runs
        .iter()
        .zip(&plan.cards)
        .zip(&slots)
        .map(|((run, plan), slot)| load::Target { plan, arenas: &run.arenas, queue: &run.queue, slot })
        .collect();
    load::upload(model, &targets, progress).map_err(|error| match error {
        UploadError::Load(problem) => problem.into(),
        UploadError::Card(card, problem) => EngineError::Card { card, problem },
    })
}

fn module_codes(plan: &CardPlan) -> Result<Vec<&'static ModuleCode>, EngineError> {
    let code =
        |name: &String| kernels::find(name).ok_or_else(|| EngineError::Kernel { module: name.clone(), kernel: "any" });
    plan.modules.iter().map(code).collect()
}

fn build_modules(card: &Card, codes: &[&ModuleCode], done: &AtomicUsize) -> Result<Vec<Module>, DeviceError> {
    let cache = device::cache::folder();
    let next = AtomicUsize::new(0);
    let build = || -> Result<Vec<Module>, DeviceError> {
        let mut built = Vec::new();
        while let Some(code) = codes.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begin = Instant::now();
            let module = Module::new(card, code, cache.as_deref())?;
            tracing::debug!(
                module = code.name,
                from_cache = module.is_from_cache(),
                ms = begin.elapsed().as_millis() as u64,
                "kernel module is ready"
            );
            built.push(module);
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(built)
    };
    // The OpenCL CPU compiler takes one program at a time in a process.
    let serial = card.info().backend == "opencl";
    let threads = if serial { 1 } else { std::thread::available_parallelism().map_or(1, usize::from).min(codes.len()) };
    std::thread::scope(|scope| {
        let builders: Vec<_> = (0..threads).map(|_| scope.spawn(build)).collect();
        let built: Result<Vec<Vec<Module>>, DeviceError> =
            builders.into_iter().map(|builder| builder.join().expect("building does not panic")).collect();
        Ok(built?.into_iter().flatten().collect())
    })
}

/// Waits for all cards, then frees them. If one does not come to rest, or cannot say that it has, all are left alone, with
/// their memory: it may still read what others hold.
pub(super) fn close(runs: &mut Vec<CardRun>, deadline: Duration) -> Result<(), EngineError> {
    let begin = Instant::now();
    let at_rest = |card: usize, queue: &Queue| match queue.drain(deadline.saturating_sub(begin.elapsed())) {
        Ok(true) => Ok(()),
        Ok(false) => Err(EngineError::Restless { card, seconds: deadline.as_secs_f64() }),
        // A lost device does nothing any more.
        Err(problem) if problem.status == Status::DEVICE_LOST => Ok(()),
        Err(problem) => Err(EngineError::Card { card, problem }),
    };
    let all = runs.iter().try_for_each(|run| {
        at_rest(run.number, &run.queue)?;
        at_rest(run.number, &run.copies)
    });
    match all {
        Ok(()) => runs.clear(),
        Err(_) => std::mem::forget(std::mem::take(runs)),
    }
    all
}
