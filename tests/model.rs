//! Binding of model files: hyper-parameters, roles, and what is said about a file that cannot be used.
//!
//! Reads the files under `BANKSHOT_FIXTURES`, without which the tests say so and pass.

use std::path::PathBuf;

use bankshot::gguf::GgufFile;
use bankshot::model::{Block, Bound, Census, LayerKind, ModelError};

fn models() -> Option<PathBuf> {
    match std::env::var_os("BANKSHOT_FIXTURES") {
        Some(root) => Some(PathBuf::from(root).join("models")),
        None => {
            println!("skipped: BANKSHOT_FIXTURES is not set");
            None
        }
    }
}

#[test]
fn qwen4exp_files_bind_without_warnings() {
    let Some(models) = models() else { return };
    for name in ["demo-ud", "qwen4exp-BF16", "qwen4exp-UDMIX", "qwen4exp-IQ3_XXS"] {
        let file = GgufFile::open(&models.join(name).with_extension("gguf")).unwrap();
        let bound = Bound::new(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(bound.warnings, Vec::<String>::new(), "{name}");
        assert_eq!(bound.spec.layers, 8);
        assert_eq!(bound.spec.kinds[3], LayerKind::Attention { ratio: 4 });
        assert!(matches!(bound.layers[2].block, Block::Gdn(_)));
        assert!(bound.layers[1].ple.is_some());
        let census = Census::of(&bound);
        println!("{name}: {census:?} {}", census.active_bytes_total());
        let bytes: u64 = file.tensors().iter().map(|tensor| tensor.bytes).sum();
        assert_eq!(census.bytes_by_format.values().sum::<u64>(), bytes, "{name}");
        assert_eq!(census.state.per_token_f16, 2 * (2 * 2 * 256 * 2 + 128 * 2 / 4));
    }
}

#[test]
fn other_architectures_are_named() {
    let Some(models) = models() else { return };
    let file = GgufFile::open(&models.join("qwen35-BF16.gguf")).unwrap();
    let error = Bound::new(&file).unwrap_err();
    assert_eq!(error.to_string(), "architecture: expected qwen4exp, found qwen35");
}

#[test]
fn unusable_formats_are_all_listed() {
    let Some(models) = models() else { return };
    let file = GgufFile::open(&models.join("qwen4exp-MTP-IQ2_XXS.gguf")).unwrap();
    let Err(ModelError::Problems(problems)) = Bound::new(&file) else { panic!("bound") };
    let iq2_xxs = problems.iter().filter(|problem| problem.to_string().ends_with("found IQ2_XXS")).count();
    let q4_k = problems.iter().filter(|problem| problem.to_string().ends_with("found Q4_K")).count();
    assert!(iq2_xxs > 80 && q4_k > 4 && iq2_xxs + q4_k == problems.len(), "{problems:?}");
}
