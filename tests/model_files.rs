//! Binding of the model files under `BANKSHOT_FIXTURES`, without which these tests say so and pass.

use std::path::PathBuf;

use bankshot::gguf::GgufFile;
use bankshot::model::{Block, Bound, Census, LayerKind};

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
fn files_of_the_other_architectures_bind_without_warnings() {
    let Some(models) = models() else { return };
    for name in [
        "qwen35-BF16",
        "qwen35-Q8_0",
        "qwen35-Q4_K_M",
        "qwen35-IQ2_XXS",
        "qwen35moe-BF16",
        "qwen35moe-Q8_0",
        "qwen35moe-IQ3_XXS",
        "qwen3next-BF16",
        "qwen3next-IQ4_XS",
        "qwen3next-IQ2_XXS",
    ] {
        let file = GgufFile::open(&models.join(name).with_extension("gguf")).unwrap();
        let bound = Bound::new(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(bound.warnings, Vec::<String>::new(), "{name}");
        assert_eq!(Some(bound.spec.arch.name()), name.split('-').next());
        assert_eq!((bound.spec.layers, bound.spec.attention_layers()), (4, 1));
        assert_eq!(bound.output.name() == bound.embed.name(), name.starts_with("qwen35-"));
        let census = Census::of(&bound);
        let bytes: u64 = file.tensors().iter().map(|tensor| tensor.bytes).sum();
        assert_eq!(census.bytes_by_format.values().sum::<u64>(), bytes, "{name}");
    }
}

#[test]
fn a_file_of_many_formats_binds() {
    let Some(models) = models() else { return };
    let file = GgufFile::open(&models.join("qwen4exp-MTP-IQ2_XXS.gguf")).unwrap();
    let bound = Bound::new(&file).unwrap();
    assert_eq!((bound.spec.layers, bound.spec.mtp_blocks), (8, 1));
    let formats = Census::of(&bound).bytes_by_format;
    for format in ["IQ2_XXS", "IQ4_NL", "Q2_K", "Q4_0", "Q4_K", "Q5_K"] {
        assert!(formats.contains_key(format), "{format}: {formats:?}");
    }
}
