//! Plans of the published models, made from their headers: what is printed of them, and that they are right by arithmetic of this file's own.
//!
//! After a change that plans or texts are meant to follow, `BLESS=1 cargo test --test plan` writes the texts anew; read the difference.

#[path = "support/gguf_writer.rs"]
mod gguf_writer;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;
#[path = "support/recount.rs"]
mod recount;
#[path = "support/shapes.rs"]
mod shapes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bankshot::gguf::GgufFile;
use bankshot::model::{Bound, KvType};
use bankshot::plan::{
    CardFacts, Change, Estimate, HostFacts, Inventory, InventoryError, Misses, Op, Options, Plan, PlanError, Rate,
    RateSource, Split,
};
use random::Random;
use recount::{check_bytes, check_kernels, check_layers, check_memory, check_tensors, count};
use serde_json::Value;
use shapes::{Shape, header_only, published};

const Q8_0: u32 = 8;
const Q4_K: u32 = 12;
const Q6_K: u32 = 14;
const IQ4_NL: u32 = 20;
const IQ2_S: u32 = 22;
const BF16: u32 = 30;

/// Names of the texts, in the order of [`published`].
const NAMES: [&str; 4] = ["flash-next", "dense-27b", "moe-35b", "next-80b"];
const CARDS: [usize; 3] = [1, 2, 4];
const CONTEXTS: [usize; 3] = [4096, 32_768, 262_144];
/// Of the texts.
const CONTEXT: usize = 32_768;

/// A mix of about 3 bits for the first model, as of a published file, and one of about 4.5 bits for the others.
fn mix(model: usize, name: &str) -> u32 {
    let has = |part: &str| name.contains(part);
    match () {
        () if has("ffn_gate_inp") => 0,
        () if model > 0 && (name == "output.weight" || has("attn_v.")) => Q6_K,
        () if model > 0 => Q4_K,
        () if has("ffn_gate_exps") || has("ffn_up_exps") => IQ2_S,
        () if has("ffn_down_exps") || has("per_layer_token_embd") => IQ4_NL,
        () if has("indexer") => BF16,
        () if has("token_embd") || name == "output.weight" => Q6_K,
        () if ["attn_q.", "attn_qkv", "attn_gate", "attn_output", "ssm_out"].iter().any(|part| has(part)) => Q6_K,
        () => Q8_0,
    }
}

/// A header on the disk, and what is bound from it.
struct Published {
    name: &'static str,
    shape: Shape,
    bound: Bound,
    path: PathBuf,
    number: usize,
    _folder: tempfile::TempDir,
}

fn models() -> Vec<Published> {
    let open = |(number, shape): (usize, Shape)| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        header_only(&shape, |name| mix(number, name)).write(&path);
        let bound = Bound::new(&GgufFile::open(&path).unwrap()).unwrap();
        Published { name: NAMES[number], shape, bound, path, number, _folder: folder }
    };
    published().into_iter().enumerate().map(open).collect()
}

const B70: &str = "[[card]]\nname = \"Arc Pro B70\"\nmemory_mib = 32656\nallocation_mib = 18119\nsub_group_sizes = [16, 32]\n\
                   memory_gb_per_s = 530\nlink_gb_per_s = 25\nexchange_us = 30\n";
const HOST: &str = "[host]\nmemory_mib = 65536\n";

fn cards_file(cards: usize) -> String {
    format!("{HOST}{B70}count = {cards}\n")
}

fn b70s(cards: usize) -> Inventory {
    Inventory::parse(&cards_file(cards), Path::new("cards.toml")).unwrap()
}

fn options(context: usize) -> Options {
    Options::new(context, 256, KvType::F16)
}

#[test]
fn plans_of_published_models_are_printed_as_they_were() {
    let mut differ = Vec::new();
    for model in models() {
        for cards in CARDS {
            let text = Plan::fit(&model.bound, options(CONTEXT), &b70s(cards)).unwrap().to_string();
            let path =
                Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/plans/{}-{cards}.txt", model.name));
            if std::env::var_os("BLESS").is_some() {
                std::fs::write(&path, &text).unwrap();
            }
            let expected = std::fs::read_to_string(&path).unwrap_or_default();
            let line = text.lines().zip(expected.lines()).find(|(new, old)| new != old);
            if text != expected {
                differ.push(format!("{}: first lines that differ (new, old): {line:#?}", path.display()));
            }
        }
    }
    assert!(differ.is_empty(), "read the difference, then run BLESS=1 cargo test --test plan\n{}", differ.join("\n"));
}

#[test]
fn plans_of_published_models_are_right() {
    for model in models() {
        for cards in CARDS {
            for context in CONTEXTS {
                for split in [None, Some(Split::Layer), Some(Split::Tensor)] {
                    let what = format!("{} on {cards} cards, context {context}, {split:?}", model.name);
                    let plan = Plan::fit(&model.bound, Options { split, ..options(context) }, &b70s(cards)).unwrap();
                    check_layers(&model, &plan, &what);
                    check_tensors(&model, &plan, &what);
                    check_bytes(&model, &plan, &what);
                    check_memory(&plan, &what);
                    check_kernels(&plan, &what);
                    let dense = model.shape.arch == "qwen35";
                    match split {
                        None if dense && cards > 1 => assert_eq!(plan.split, Split::Tensor, "{what}"),
                        None => assert_eq!(plan.split, Split::Layer, "{what}"),
                        Some(split) if cards > 1 => assert_eq!(plan.split, split, "{what}"),
                        Some(_) => {}
                    }
                    let recorded = plan.split == Split::Layer;
                    assert_eq!(plan.recorded(), recorded, "{what}: the host has room for all experts");
                }
            }
        }
    }
}

#[test]
fn estimates_are_bytes_over_rates() {
    let [flash, dense, ..] = &models()[..] else { panic!("four models") };
    let plan = Plan::fit(&dense.bound, options(CONTEXT), &b70s(1)).unwrap();
    let weights: u64 = count(dense).matrices.values().map(|(_, bytes)| bytes).sum();
    for position in [0, CONTEXT - 1] {
        let estimate = Estimate::of(&plan, position);
        // Keys and values of 16 layers, 4 heads of 256 in two bytes; 48 layers with 48 matrices of 128 x 128.
        let state = (16 * 2 * 4 * 256 * 2 * (position + 1) + 48 * 48 * 128 * 128 * 4) as f64;
        let bytes = weights as f64 + state;
        assert!((estimate.cards[0].bytes as f64 / bytes - 1.0).abs() < 0.005, "{estimate:?}, {bytes}");
        assert_eq!(estimate.cards[0].host_bytes, 0);
        let us = estimate.cards[0].bytes as f64 / 530e9 * 1e6;
        assert!((estimate.step_us.unwrap() / us - 1.0).abs() < 1e-9);
        assert!(estimate.missing(&plan).is_empty());
    }
    let four = Plan::fit(&dense.bound, options(CONTEXT), &b70s(4)).unwrap();
    let estimate = Estimate::of(&four, 0);
    // Four in each layer: after the inputs of the block, after it, and the same for the feed-forward.
    assert_eq!(estimate.exchanges, 4 * 64);
    // Of an attention layer: query with gate, key, value; output; gate and up; down. Of the other 48: all inputs; the rest alike.
    let common = 5120 + 2 * 17_408 + 5120;
    let columns = 16 * (2 * 24 * 256 + 2 * 4 * 256 + common) + 48 * ((2 * 16 + 48) * 128 + 48 * 128 + common);
    assert_eq!(estimate.exchange_bytes, 4 * columns + columns);
    let us = 256.0 * 30.0 + estimate.exchange_bytes as f64 / 25e9 * 1e6;
    assert!((estimate.exchange_us.unwrap() - us).abs() < 1e-6);
    let layer = Options { split: Some(Split::Layer), ..options(CONTEXT) };
    let estimate = Estimate::of(&Plan::fit(&dense.bound, layer, &b70s(4)).unwrap(), 0);
    // The residual and the output of the block that is to be added, out of a card and into the next; one stream's weight.
    assert_eq!((estimate.exchanges, estimate.exchange_bytes), (3, 3 * 2 * 4 * (5120 + 5120 + 1)));

    let plan = Plan::fit(&flash.bound, options(CONTEXT), &b70s(1)).unwrap();
    assert_eq!(plan.misses, Misses::Mirror);
    let resident: usize = plan.cards[0].experts.iter().map(|layer| layer.slots.count).sum();
    assert!(resident < 48 * 512);
    // Ten of 512 experts of each layer, of which that share has no slot.
    let missed = count(flash).expert as f64 * 10.0 * (48.0 - resident as f64 / 512.0);
    let estimate = Estimate::of(&plan, 0);
    assert!((estimate.cards[0].host_bytes as f64 / missed - 1.0).abs() < 1e-3, "{estimate:?}, {missed}");
    let us = estimate.cards[0].bytes as f64 / 530e9 * 1e6 + estimate.cards[0].host_bytes as f64 / 25e9 * 1e6;
    assert!((estimate.step_us.unwrap() / us - 1.0).abs() < 1e-9);

    let mut inventory = b70s(2);
    inventory.cards[0].link = None;
    inventory.cards[1].memory = None;
    inventory.cards[1].exchange_us = None;
    let plan = Plan::fit(&dense.bound, options(CONTEXT), &inventory).unwrap();
    assert_eq!(plan.split, Split::Tensor, "the usual one");
    let estimate = Estimate::of(&plan, 0);
    assert_eq!(estimate.step_us, None);
    assert_eq!(
        estimate.missing(&plan),
        ["link_gb_per_s of card 0", "memory_gb_per_s of card 1", "exchange_us of card 1"]
    );
    let text = plan.to_string();
    assert!(text.contains("lacks link_gb_per_s of card 0, memory_gb_per_s") && !text.contains("tok/s"), "{text}");
}

#[test]
fn experts_that_the_host_has_no_room_for_are_read_from_the_file() {
    let [flash, ..] = &models()[..] else { panic!("four models") };
    let least = count(flash).expert.next_multiple_of(256) * 10;
    let fit =
        |host: u64| Plan::fit(&flash.bound, Options { host_expert_bytes: Some(host), ..options(CONTEXT) }, &b70s(1));
    let plan = fit(3 * least).unwrap();
    assert_eq!((plan.misses, plan.options.chunk, plan.recorded()), (Misses::File, 3, false));
    check_memory(&plan, "file");
    let text = plan.to_string();
    for part in [
        "at most 56.4 MiB of the host for experts",
        "read from the file",
        "30 slots for experts that are read",
        "one by one around the reads of experts",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(fit(least).is_ok());
    let error = fit(least - 1).unwrap_err();
    let PlanError::HostMemory { budget_bytes, least_bytes, .. } = error else { panic!("{error}") };
    assert_eq!((budget_bytes, least_bytes), (Some(least - 1), least));

    // The option is named where it is what limits, and the host where that does.
    let refused = |budget: Option<u64>, host_mib: u64| {
        let mut inventory = b70s(1);
        inventory.host.free_bytes = host_mib << 20;
        let asked = Options { host_expert_bytes: budget, ..options(CONTEXT) };
        Plan::fit(&flash.bound, asked, &inventory).unwrap_err().to_string()
    };
    let text = refused(Some(0), 65_536);
    assert!(text.contains("--host-expert-budget allows 0 bytes of the host for them"), "{text}");
    assert!(text.ends_with(&format!("the smallest change that fits: --host-expert-budget {least}")), "{text}");
    let text = refused(None, 1024);
    assert!(text.contains("the host has 0 bytes for them"), "{text}");
    assert!(text.ends_with(&format!("the smallest change that fits: {least} bytes of host memory")), "{text}");
    let text = refused(Some(5), 1024);
    assert!(text.contains("the host has 0 bytes for them"), "{text}");
    assert!(text.ends_with(&format!("{least} bytes of host memory and --host-expert-budget {least}")), "{text}");
}

#[test]
fn only_cards_in_host_memory_take_it() {
    let [flash, ..] = &models()[..] else { panic!("four models") };
    let gib = 1 << 30;
    let mut inventory = b70s(2);
    inventory.host.free_bytes = 256 * gib;
    // Neither holds half of the model, so that both have experts in host memory.
    inventory.cards.iter_mut().for_each(|card| card.free_bytes = 12 * gib);
    let of = |inventory: &Inventory| {
        let asked = Options { split: Some(Split::Layer), ..options(CONTEXT) };
        Plan::fit(&flash.bound, asked, inventory).unwrap()
    };
    let apart = of(&inventory);
    inventory.cards[1].in_host_memory = true;
    let mixed = of(&inventory);
    assert_eq!((apart.misses, mixed.misses), (Misses::Mirror, Misses::Mirror));
    assert!(mixed.cards[0] == apart.cards[0], "a card with a memory of its own gives nothing away");
    // The other one leaves room for all experts of a layer, and a GiB.
    let resident = |plan: &Plan| plan.cards[1].experts.iter().map(|layer| layer.slots.bytes()).sum::<u64>();
    let slot = mixed.cards[1].experts[0].slots.slot_bytes;
    let left = resident(&apart) - resident(&mixed);
    assert!((gib + 511 * slot..=gib + 513 * slot).contains(&left), "{left}");
    // Of the host, its own memory counts and not the first card's: with as much as that needs, and no less, there are mirrors.
    let pinned: u64 = mixed.cards.iter().map(|card| card.ledger.total(true)).sum();
    inventory.host.free_bytes = pinned + mixed.cards[1].ledger.total(false) + gib;
    assert!(of(&inventory).cards == mixed.cards);
    inventory.host.free_bytes -= 1;
    assert_eq!(of(&inventory).misses, Misses::File);
}

#[test]
fn host_memory_is_counted_when_all_experts_are_resident_too() {
    let [_, dense, moe, _] = &models()[..] else { panic!("four models") };
    for model in [dense, moe] {
        let mut inventory = b70s(4);
        let asked = Options { split: Some(Split::Tensor), ..options(4096) };
        let plan = Plan::fit(&model.bound, asked, &inventory).unwrap();
        assert_eq!(plan.misses, Misses::None);
        let staging: u64 = plan.cards.iter().flat_map(|card| card.buffers.staging.unwrap()).map(|r| r.bytes).sum();
        inventory.cards[2].in_host_memory = true;
        let needed = staging + plan.cards[2].ledger.total(false);
        inventory.host.free_bytes = needed;
        assert!(Plan::fit(&model.bound, asked, &inventory).unwrap().cards == plan.cards, "{}", model.name);
        inventory.host.free_bytes = needed - 1;
        let error = Plan::fit(&model.bound, asked, &inventory).unwrap_err();
        check_refusal(model, asked, &inventory, &error, model.name);
        let PlanError::Split { fits: Split::Layer, problem } = error else { panic!("{error}") };
        let PlanError::Host { needed_bytes, free_bytes, .. } = *problem else { panic!("{problem}") };
        assert_eq!((needed_bytes, free_bytes), (needed, needed - 1), "{}", model.name);
    }
}

/// A change that is said to fit does, and without one none does.
fn check_change(model: &Published, options: Options, inventory: &Inventory, change: Change, what: &str) {
    let fits = |options: Options| Plan::fit(&model.bound, options, inventory);
    let changed = match change {
        Change::Chunk { from, to } => {
            let halves = || (1..13).map(|times| from / (1 << times));
            assert!(from == options.chunk && to > 0 && halves().any(|half| half == to), "{what}");
            let all_fail = halves().filter(|half| *half > to).all(|chunk| fits(Options { chunk, ..options }).is_err());
            assert!(all_fail, "{what}");
            Options { chunk: to, ..options }
        }
        Change::Context { from, to } => {
            assert!(from == options.context && to < from, "{what}");
            assert!(fits(Options { chunk: 1, ..options }).is_err(), "{what}");
            assert!(fits(Options { context: to + 1, ..options }).is_err(), "{what}");
            Options { context: to, ..options }
        }
        Change::Kv(kv) => Options { kv, ..options },
        Change::Bank { bytes } => {
            let more = Options { bank_bytes: bytes + (1 << 20), ..options };
            assert!(
                bytes < options.bank_bytes && (more.bank_bytes > options.bank_bytes || fits(more).is_err()),
                "{what}"
            );
            Options { bank_bytes: bytes, ..options }
        }
        Change::HostBank { bytes } => {
            let more = Options { host_bank_bytes: bytes + (1 << 20), ..options };
            let most = more.host_bank_bytes > options.host_bank_bytes;
            assert!(bytes < options.host_bank_bytes && (most || fits(more).is_err()), "{what}");
            Options { host_bank_bytes: bytes, ..options }
        }
        Change::ExpertBudget { bytes } => Options { expert_bytes: Some(bytes), ..options },
        Change::None => {
            for changed in [
                Options { context: 1, ..options },
                Options { kv: KvType::F16, ..options },
                Options { chunk: 1, ..options },
            ] {
                assert!(fits(changed).is_err(), "{what}");
            }
            return;
        }
    };
    fits(changed).unwrap_or_else(|error| panic!("{what}\nthen: {error}"));
}

/// What an error says would fit does fit, and what it says cannot be helped cannot.
fn check_refusal(model: &Published, options: Options, inventory: &Inventory, error: &PlanError, what: &str) {
    match error {
        PlanError::Memory(table) => {
            let is_short = options.expert_bytes.is_some_and(|bytes| bytes < table.experts);
            assert!(table.needed() > table.free || is_short, "{what}: {table}");
            check_change(model, options, inventory, table.change, &format!("{what}: {table}"));
        }
        PlanError::Host { needed_bytes, free_bytes, change } => {
            assert!(needed_bytes > free_bytes, "{what}: {error}");
            check_change(model, options, inventory, *change, &format!("{what}: {error}"));
        }
        PlanError::HostMemory { host_bytes, budget_bytes, least_bytes, .. } => {
            assert!(budget_bytes.unwrap_or(u64::MAX).min(*host_bytes) < *least_bytes, "{what}: {error}");
            let mut more = inventory.clone();
            more.host.free_bytes = 1 << 40;
            let with = |bytes| Options { host_expert_bytes: Some(bytes), ..options };
            let plan = Plan::fit(&model.bound, with(*least_bytes), &more);
            check_memory(&plan.unwrap_or_else(|next| panic!("{what}: {error}\nthen: {next}")), what);
            assert!(Plan::fit(&model.bound, with(least_bytes - 1), &more).is_err(), "{what}: {error}");
        }
        PlanError::BankBudget { bytes, max, .. } => assert!(bytes > max, "{what}: {error}"),
        PlanError::BankSmall { bytes, least, .. } => {
            assert!(bytes < least && options.bank_bytes + options.host_bank_bytes > 0, "{what}: {error}");
        }
        PlanError::Piece { bytes, max, change, .. } => {
            assert!(bytes > max, "{what}: {error}");
            check_change(model, options, inventory, *change, &format!("{what}: {error}"));
        }
        PlanError::Split { fits, problem } => {
            assert!(options.split.is_some_and(|split| split != *fits), "{what}: {error}");
            let other = Plan::fit(&model.bound, Options { split: Some(*fits), ..options }, inventory);
            assert!(other.is_ok(), "{what}: {error}");
            check_refusal(model, options, inventory, problem, what);
        }
        PlanError::Cards { cards, max, .. } => assert!(cards > max, "{what}: {error}"),
        error => panic!("{what}: {error}"),
    }
}

#[test]
fn random_inventories_have_plans_that_fit_or_errors_that_help() {
    let mut random = Random(2026);
    let mut below = |n: u64| random.next() % n;
    let (mut fitted, mut refused) = (0, BTreeMap::<String, usize>::new());
    for model in models() {
        for case in 0..40 {
            let rate = |gb: u64| (gb > 0).then_some(Rate { bytes_per_s: gb as f64 * 1e9, source: RateSource::Stated });
            // From cards that hold a few layers to such that hold all.
            let cards = 1 + below(4);
            let mean_mib = [2000, 6000, 12_000, 32_656, 49_152][below(5) as usize];
            let mut card = || CardFacts {
                name: "a card".to_owned(),
                free_bytes: (mean_mib / 2 + below(mean_mib)) << 20,
                allocation_bytes_max: (512 + below(20_000)) << 20,
                sub_groups: vec![16],
                in_host_memory: below(4) == 0,
                memory: rate(below(4) * 100 + below(2)),
                link: rate(below(30)),
                exchange_us: (below(4) > 0).then_some(20.0),
            };
            let inventory = Inventory {
                cards: (0..cards).map(|_| card()).collect(),
                host: HostFacts { free_bytes: (1 + below(64)) << 30, allocation_bytes_max: (1 + below(8)) << 30 },
            };
            let options = Options {
                split: [None, Some(Split::Layer), Some(Split::Tensor)][below(3) as usize],
                expert_bytes: (below(3) == 0).then(|| below(20_000) << 20),
                // Of a host that has gigabytes or nothing much.
                host_expert_bytes: (below(4) == 0).then(|| below(20_000) << (10 + 10 * below(2))),
                kv: if below(3) == 0 { KvType::F32 } else { KvType::F16 },
                bank_bytes: if below(4) == 0 { below(6_000) << 20 } else { 0 },
                host_bank_bytes: if below(4) == 0 { below(20_000) << 20 } else { 0 },
                ..Options::new(1 << (8 + below(11)), 1 + (below(1 << 12) >> below(12)) as usize, KvType::F16)
            };
            let what = format!("{}, case {case}: {options:?}, {inventory:?}", model.name);
            match Plan::fit(&model.bound, options, &inventory) {
                Ok(plan) => {
                    fitted += 1;
                    check_layers(&model, &plan, &what);
                    check_tensors(&model, &plan, &what);
                    check_memory(&plan, &what);
                    assert!(plan.to_string().contains("a step of one token"));
                }
                Err(error) => {
                    let other = |split: Split| if split == Split::Layer { Split::Tensor } else { Split::Layer };
                    let other = options.split.map(|split| Options { split: Some(other(split)), ..options });
                    let named = matches!(error, PlanError::Split { .. });
                    let fits = other.is_some_and(|other| Plan::fit(&model.bound, other, &inventory).is_ok());
                    assert_eq!(named, cards > 1 && fits, "{what}: {error}");
                    let kind = match &error {
                        PlanError::Memory(table) => format!("{:?}", table.change),
                        error => format!("{error:?}"),
                    };
                    *refused.entry(kind.split([' ', '(']).next().unwrap().to_owned()).or_default() += 1;
                    check_refusal(&model, options, &inventory, &error, &what);
                }
            }
        }
    }
    // All kinds of outcome were met.
    for kind in ["Chunk", "Context", "ExpertBudget", "None", "HostMemory", "Host", "Split"] {
        assert!(fitted > 20 && refused.contains_key(kind), "{fitted} plans, {refused:?}");
    }
}

fn bankshot(args: &[&str]) -> Output {
    // No device may be touched, so that none is found either.
    let mut command = Command::new(env!("CARGO_BIN_EXE_bankshot"));
    command.args(args).env("OCL_ICD_FILENAMES", "/nonexistent").env("OCL_ICD_VENDORS", "/nonexistent").output().unwrap()
}

#[track_caller]
fn failure(args: &[&str]) -> String {
    let output = bankshot(args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("error: ") && output.stdout.is_empty(), "{text}");
    text
}

#[test]
fn the_command_prints_the_plan_and_touches_no_device() {
    let models = models();
    let (flash, folder) = (&models[0], tempfile::tempdir().unwrap());
    let (model, cards) = (flash.path.to_str().unwrap(), folder.path().join("cards.toml"));
    std::fs::write(&cards, cards_file(2)).unwrap();
    let common = ["plan", model, "--cards", cards.to_str().unwrap(), "--ctx", "32768"];
    let text = String::from_utf8(bankshot(&common).stdout).unwrap();
    // Zeros in F32 can be kept as BF16.
    let bound = Bound::narrowed(&GgufFile::open(&flash.path).unwrap()).unwrap();
    let plan = Plan::fit(&bound, options(CONTEXT), &b70s(2)).unwrap();
    assert_eq!(text, plan.to_string());
    assert!(text.contains("matmul_bf16 r1|r8: BF16 512 x 2560, F32 in the file"), "{text}");

    let json =
        bankshot(&[&common[..], &["--json", "--split", "tensor", "--kv", "f32", "--chunk", "64"]].concat()).stdout;
    let json: Value = serde_json::from_slice(&json).unwrap();
    let asked = Options { split: Some(Split::Tensor), ..Options::new(CONTEXT, 64, KvType::F32) };
    let plan = Plan::fit(&bound, asked, &b70s(2)).unwrap();
    assert_eq!((&json["split"], &json["split_reason"]), (&"tensor".into(), &"asked for".into()));
    assert_eq!(json["step_is_recorded"], false);
    for (card, described) in plan.cards.iter().zip(json["cards"].as_array().unwrap()) {
        let sum = |on_host: bool| -> u64 {
            let arenas = described["arenas"].as_array().unwrap().iter();
            arenas.filter(|arena| arena["on_host"] == on_host).map(|arena| arena["bytes"].as_u64().unwrap()).sum()
        };
        assert_eq!((sum(false), sum(true)), (card.ledger.total(false), card.ledger.total(true)));
        assert_eq!(described["launches"], card.launches());
        assert_eq!(described["layers"].as_array().unwrap().len(), 48);
        for (layer, described) in card.layers.iter().zip(described["layers"].as_array().unwrap()) {
            assert_eq!(described["layer"], layer.index);
            let steps = described["steps"].as_array().unwrap();
            for (step, described) in layer.steps.iter().zip(steps) {
                assert_eq!(described["name"], step.name);
                if let Op::Matmul { weight, .. } | Op::ExpertMatmul { weight, .. } = &step.op {
                    assert_eq!(described["matrix"]["tensor"], card.weights[*weight].tensor.name());
                    assert_eq!(described["kernels_one_row"][0]["kernel"], "matmul_r1");
                }
            }
            assert_eq!(steps.len(), layer.steps.len());
        }
    }
    assert_eq!(json["estimates"][1]["step_us"].as_f64(), Estimate::of(&plan, CONTEXT - 1).step_us);
    assert_eq!(json["estimates"][1]["is_measured"], false);
}

#[test]
fn cards_of_this_machine_are_measured() {
    const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/demo/demo-ud.gguf");
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_bankshot")).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let written = run(&["devices", "--cards", "cpu:2"]);
    let inventory = Inventory::parse(&written, Path::new("cards.toml")).unwrap();
    assert!(inventory.cards.len() == 2 && inventory.cards.iter().all(|card| card.in_host_memory));
    assert!(
        inventory.cards.iter().all(|card| card.memory.is_some() && card.link.is_some() && card.exchange_us.is_some())
    );
    let folder = tempfile::tempdir().unwrap();
    let cards = folder.path().join("cards.toml");
    std::fs::write(&cards, written).unwrap();
    let of_file = run(&["plan", DEMO, "--cards", cards.to_str().unwrap()]);
    let of_devices = run(&["plan", DEMO, "--device", "cpu:2"]);
    for (text, source) in [(of_file, "(stated)"), (of_devices, "(measured)")] {
        // Memory, link and exchange, once if the cards are alike and twice if not.
        assert!([3, 6].contains(&text.matches(source).count()), "{text}");
        assert!(text.contains("NOT A MEASUREMENT") && text.contains("MiB of the host's memory free"), "{text}");
    }
    assert!(failure(&["plan", DEMO]).contains("no usable device"), "this test hides them all");
}

#[test]
fn refused_plans_say_what_would_fit() {
    let models = models();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cards.toml");
    let plan = |model: &Published, cards: &str, args: &[&str]| {
        std::fs::write(&file, cards).unwrap();
        let common = ["plan", model.path.to_str().unwrap(), "--cards", file.to_str().unwrap()];
        bankshot(&[&common[..], args].concat())
    };
    let refused = |model: &Published, cards: &str, args: &[&str]| {
        let output = plan(model, cards, args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let other = |mib: u64| B70.replace("32656", &mib.to_string());
    let small = |mib: u64| format!("{HOST}{}", other(mib));
    let [flash, dense, moe, next] = &models[..] else { panic!("four models") };

    // The change that the error names is applied as it is written.
    for (model, cards, args, option) in [
        (dense, small(20_000), vec!["--ctx", "262144"], "--ctx"),
        (dense, small(17_000), vec!["--chunk", "4096"], "--chunk"),
        (dense, small(20_000), vec!["--ctx", "262144", "--chunk", "4096"], "--ctx"),
        // A cache of one layer is larger than an arena.
        (next, format!("{HOST}{B70}").replace("18119", "250"), vec!["--ctx", "262144"], "--ctx"),
        (next, format!("{HOST}{B70}").replace("18119", "250"), vec!["--ctx", "200000", "--kv", "f32"], "--ctx"),
        (next, format!("{HOST}{B70}").replace("18119", "250"), vec!["--chunk", "4096"], "--chunk"),
        (dense, small(20_000), vec!["--ctx", "65536", "--kv", "f32"], "--ctx"),
        (dense, small(18_000), vec!["--ctx", "262144", "--kv", "f32"], "--ctx"),
        (flash, small(12_000), vec!["--ctx", "65536", "--expert-budget", "30G"], "--expert-budget"),
        (flash, small(12_000), vec!["--ctx", "65536", "--expert-budget", "1"], "--expert-budget"),
        (
            moe,
            small(5000) + B70 + &other(4500),
            vec!["--ctx", "4096", "--expert-budget", "25G", "--split", "tensor"],
            "--expert-budget",
        ),
    ] {
        let error = refused(model, &cards, &args);
        let change =
            error.trim_end().rsplit_once("the smallest change that fits: ").unwrap_or_else(|| panic!("{error}")).1;
        let change = change.lines().next().unwrap();
        let change: Vec<&str> = change.split(" instead").next().unwrap().split(' ').collect();
        let mut args = args;
        match args.iter().position(|arg| *arg == change[0]) {
            Some(at) => args[at + 1] = change[1],
            None => args.extend(&change),
        }
        assert_eq!(change[0], option, "{error}");
        let output = plan(model, &cards, &args);
        assert!(output.status.success(), "{error}\nthen: {}", String::from_utf8_lossy(&output.stderr));
    }
    // Four cards of a tensor split would hold each its part of the state.
    let both = small(5000) + &other(5000) + &other(5000) + &other(5000);
    let error = refused(dense, &both, &["--split", "tensor", "--ctx", "16384", "--kv", "f32"]);
    assert!(error.ends_with("the other split fits: --split layer\n"), "{error}");
    assert!(plan(dense, &both, &["--split", "layer", "--ctx", "16384", "--kv", "f32"]).status.success());
    let error = refused(dense, &small(4000), &[]);
    assert!(
        error.contains("neither a smaller --chunk nor a shorter --ctx is enough")
            && error.contains("free           4000 MiB"),
        "{error}"
    );
    let error = refused(moe, &small(32_656), &["--expert-budget", "0"]);
    assert!(error.starts_with("error: --expert-budget holds less than one expert of each layer, which"), "{error}");
    let error = refused(moe, &cards_file(2), &["--expert-budget", "0"]);
    assert!(error.contains("less than one expert of each layer on card 0 (Arc Pro B70), which"), "{error}");
    let error = refused(flash, &format!("{HOST}{B70}count = 49\n"), &["--split", "layer"]);
    assert!(
        error.contains("49 cards: expected at most 48, each card of a layer split has at least one layer"),
        "{error}"
    );
    assert!(plan(flash, &format!("{HOST}{B70}count = 49\n"), &[]).status.success(), "the tensor split has room");
    assert!(plan(dense, &cards_file(1), &["--expert-budget", "1G"]).status.success(), "there are no experts to limit");
    let error = refused(flash, &cards_file(1).replace("[16, 32]", "[8]"), &[]);
    assert!(error.contains("card 0 (Arc Pro B70): sub-groups: expected 16 or 32 lanes among them, got [8]"), "{error}");
    let error = refused(flash, &cards_file(1), &["--ctx", "262145"]);
    assert!(error.contains("context: expected 1 to 262144 tokens"), "{error}");
    let error = refused(flash, &cards_file(1), &["--ctx", "0"]);
    assert!(error.contains("context: expected 1 to 262144 tokens"), "{error}");
}

#[test]
fn bad_inventories_are_named() {
    let text = cards_file(1);
    let with = |from: &str, to: &str| text.replace(from, to);
    for (inventory, expected) in [
        ("card = [".to_owned(), "TOML parse error"),
        (with("link_gb", "links_gb"), "unknown field `links_gb_per_s`"),
        (with("32656", "-1"), "memory_mib = -1"),
        (with("32656", "0"), "card 0: memory_mib: expected 1 to 2^44-1 MiB, got 0"),
        (with("32656", "17592186044416"), "card 0: memory_mib: expected 1 to 2^44-1 MiB, got 17592186044416"),
        (with("65536", "0"), "host: memory_mib: expected 1 to 2^44-1 MiB, got 0"),
        (with("18119", "0"), "card 0: allocation_mib: expected 1 to 2^44-1 MiB, got 0"),
        (with("530", "nan"), "card 0: memory_gb_per_s: expected a number from 0.001 to 1e9, got NaN"),
        (with("530", "0"), "card 0: memory_gb_per_s: expected a number from 0.001 to 1e9, got 0"),
        (with("= 25", "= -25"), "card 0: link_gb_per_s: expected a number from 0.001 to 1e9, got -25"),
        (with("= 25", "= 1e305"), "card 0: link_gb_per_s: expected a number from 0.001 to 1e9, got 1"),
        (with("= 30", "= inf"), "card 0: exchange_us: expected a number from 0.001 to 1e9, got inf"),
        (with("= 30", "= \"fast\""), "exchange_us = \"fast\""),
        (with("[16, 32]", "[]"), "card 0: sub_group_sizes: expected at least one size, got none"),
        (with("count = 1", "count = 0"), "card 0: count: expected 1 or more, and at most 64 cards in all, got 0"),
        (with("count = 1", "count = 65"), "card 0: count: expected 1 or more, and at most 64 cards in all, got 65"),
        (cards_file(63) + B70 + B70, "card 2: count: expected 1 or more, and at most 64 cards in all, got 1"),
        (HOST.to_owned(), "missing field `card`"),
        (format!("card = []\n{HOST}"), "card: expected at least one, got none"),
        (B70.to_owned(), "missing field `host`"),
        (with("name = \"Arc Pro B70\"\n", ""), "missing field `name`"),
    ] {
        let error = Inventory::parse(&inventory, Path::new("cards.toml")).unwrap_err().to_string();
        assert!(error.starts_with("cards.toml: ") && error.contains(expected), "{expected}: {error}");
    }
    assert_eq!(b70s(64).cards.len(), 64);
    let error = Inventory::read(Path::new("/no/such/cards.toml")).unwrap_err();
    assert!(
        matches!(error, InventoryError::Read { .. }) && error.to_string().contains("/no/such/cards.toml"),
        "{error}"
    );
    let models = models();
    let model = models[0].path.to_str().unwrap();
    assert!(failure(&["plan", model, "--cards", "/no/such/cards.toml"]).contains("cannot read /no/such/cards.toml: "));
    assert!(failure(&["plan", model, "--cards", "/"]).contains("cannot read /: "));
    assert!(failure(&["plan", model, "--cards", model]).contains("model.gguf: "), "no TOML, nor UTF-8");
    assert_eq!(bankshot(&["plan", model, "--cards", "a.toml", "--device", "0"]).status.code(), Some(2));
}

#[test]
fn an_inventory_is_read_as_it_was_written() {
    let mut inventory = b70s(2);
    inventory.cards[1].in_host_memory = true;
    inventory.cards[1].link = None;
    inventory.cards[1].exchange_us = Some(12.345);
    inventory.cards[1].memory = Some(Rate { bytes_per_s: 456.789e9, source: RateSource::Measured });
    let read = Inventory::parse(&inventory.to_toml(), Path::new("cards.toml")).unwrap();
    // Whoever passes the file on states the figures.
    inventory.cards[1].memory = Some(Rate { bytes_per_s: 456.789e9, source: RateSource::Stated });
    assert_eq!(read, inventory);
    let unlimited = Inventory::unlimited(1);
    let read = Inventory::parse(&unlimited.to_toml(), Path::new("cards.toml")).unwrap();
    assert_eq!(read.cards[0].free_bytes, u64::MAX >> 20 << 20);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cards.toml");
    assert_eq!(Inventory::read(&example).unwrap().cards, b70s(2).cards);
}
