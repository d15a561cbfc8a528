//! Small models with random weights in every format and with the head sizes that the kernels are built for.

use bankshot::quant::Format;

use super::gguf_writer::GgufWriter;
use super::random::{Random, random_rows};

pub const VOCAB: usize = 264;
const HIDDEN: usize = 256;
const STREAMS: usize = 2;
const EXPERTS: usize = 8;
const LAYERS: usize = 4;
const HEAD: usize = 256;
const GDN_HEAD: usize = 128;

/// Writes tensors whose formats go round through all that fit their rows.
struct Tensors<'a> {
    formats: &'a [Format],
    writer: GgufWriter,
    random: Random,
    turn: usize,
}

impl Tensors<'_> {
    /// dims with the fastest first.
    fn matrix(&mut self, name: &str, dims: &[usize]) {
        let fits = |format: &Format| dims[0].is_multiple_of(format.block_elements().max(32));
        let formats: Vec<Format> = self.formats.iter().copied().filter(fits).collect();
        let format = formats[self.turn % formats.len()];
        self.turn += 1;
        let rows = dims[1..].iter().product();
        let data = random_rows(&mut self.random, format, rows, dims[0]);
        self.put(name, dims, format.ggml_id(), &data);
    }

    fn vector(&mut self, name: &str, dims: &[usize], value: impl Fn(f32) -> f32) {
        let n = dims.iter().product();
        let data: Vec<u8> = (0..n).flat_map(|_| value(self.random.uniform()).to_le_bytes()).collect();
        self.put(name, dims, Format::F32.ggml_id(), &data);
    }

    fn norm(&mut self, name: &str, n: usize) {
        self.vector(name, &[n], |x| 1.0 + 0.2 * x);
    }

    fn put(&mut self, name: &str, dims: &[usize], ggml_type: u32, data: &[u8]) {
        let dims: Vec<u64> = dims.iter().map(|n| *n as u64).collect();
        let writer = std::mem::replace(&mut self.writer, GgufWriter::new(""));
        self.writer = writer.tensor(name, &dims, ggml_type, data);
    }
}

/// A model file of one architecture: three layers of delta net and one of attention.
pub fn random_model(arch: &str) -> Vec<u8> {
    random_model_of(arch, &Format::ALL)
}

/// The same with matrices in some formats alone, which needs fewer kernels.
pub fn random_model_of(arch: &str, formats: &[Format]) -> Vec<u8> {
    random_model_with_context(arch, formats, 512)
}

/// The same for sequences of so many tokens.
pub fn random_model_with_context(arch: &str, formats: &[Format], context: usize) -> Vec<u8> {
    let streams = arch == "qwen4exp";
    let dense = arch == "qwen35";
    let (key_heads, value_heads, heads, kv_heads) = (2, 4, 2, 1);
    let mut w = GgufWriter::new(arch);
    let key = |name: &str| format!("{arch}.{name}");
    for (name, value) in [
        ("block_count", LAYERS),
        ("context_length", context),
        ("embedding_length", HIDDEN),
        ("attention.head_count", heads),
        ("attention.head_count_kv", kv_heads),
        ("attention.key_length", HEAD),
        ("attention.value_length", HEAD),
        ("rope.dimension_count", 64),
        ("full_attention_interval", 4),
        ("ssm.conv_kernel", 4),
        ("ssm.state_size", GDN_HEAD),
        ("ssm.group_count", key_heads),
        ("ssm.time_step_rank", value_heads),
        ("ssm.inner_size", value_heads * GDN_HEAD),
    ] {
        w = w.kv_u32(&key(name), value as u32);
    }
    w = w.kv_f32(&key("attention.layer_norm_rms_epsilon"), 1e-6).kv_f32(&key("rope.freq_base"), 1e7);
    if dense {
        w = w.kv_u32(&key("feed_forward_length"), 512);
    } else {
        for (name, value) in [
            ("expert_count", EXPERTS),
            ("expert_used_count", 3),
            ("expert_feed_forward_length", 256),
            ("expert_shared_feed_forward_length", 96),
        ] {
            w = w.kv_u32(&key(name), value as u32);
        }
    }
    if streams {
        for (name, value) in [
            ("hyper_connection.count", STREAMS),
            ("hyper_connection.low_rank", 96),
            ("attention.indexer.head_count", 2),
            ("attention.indexer.key_length", 128),
            ("attention.indexer.top_k", 16),
            ("ple.ngram_size", 3),
            ("ple.heads_per_ngram", 4),
            ("ple.conv_kernel", 4),
            ("ple.eos_token_id", 7),
            ("embedding_length_per_layer_input", 32),
        ] {
            w = w.kv_u32(&key(name), value as u32);
        }
        let sizes = [53u64, 59, 61, 67, 71, 73, 79, 83];
        let offsets: Vec<u64> = sizes
            .iter()
            .scan(0, |at, size| {
                *at += size;
                Some(*at - size)
            })
            .collect();
        w = w
            .kv_u32_array(&key("attention.compress_ratios"), &[0, 0, 0, 4])
            .kv_u32_array(&key("ple.layers"), &[1])
            .kv_u64_array(
                &key("ple.layer_multipliers"),
                &[2_043_359_076_095_531, 1_677_619_451_946_387, 1_270_917_961_443_223],
            )
            .kv_u64_array(&key("ple.head_offsets"), &offsets)
            .kv_u64_array(&key("ple.head_vocab_sizes"), &sizes);
    }
    let mut t = Tensors { formats, writer: tokenizer(w), random: Random(arch.len() as u64), turn: 0 };
    t.matrix("token_embd.weight", &[HIDDEN, VOCAB]);
    if !dense {
        t.matrix("output.weight", &[HIDDEN, VOCAB]);
    }
    if streams {
        t.matrix("per_layer_token_embd.weight", &[32, 546]);
        mixer(&mut t, "output_hc", false);
    } else {
        t.norm("output_norm.weight", HIDDEN);
    }
    for layer in 0..LAYERS {
        let name = |role: &str| format!("blk.{layer}.{role}");
        if streams {
            mixer(&mut t, &name("hc_attn"), true);
            mixer(&mut t, &name("hc_ffn"), true);
        } else {
            t.norm(&name("attn_norm.weight"), HIDDEN);
            t.norm(&name("post_attention_norm.weight"), HIDDEN);
        }
        if layer == 3 {
            t.matrix(&name("attn_q.weight"), &[HIDDEN, heads * 2 * HEAD]);
            t.matrix(&name("attn_k.weight"), &[HIDDEN, kv_heads * HEAD]);
            t.matrix(&name("attn_v.weight"), &[HIDDEN, kv_heads * HEAD]);
            t.matrix(&name("attn_output.weight"), &[heads * HEAD, HIDDEN]);
            t.norm(&name("attn_q_norm.weight"), HEAD);
            t.norm(&name("attn_k_norm.weight"), HEAD);
            if streams {
                t.matrix(&name("indexer.q_proj.weight"), &[HIDDEN, 256]);
                t.matrix(&name("indexer.k_proj.weight"), &[HIDDEN, 128]);
                t.norm(&name("indexer.q_norm.weight"), 128);
                t.norm(&name("indexer.k_norm.weight"), 128);
            }
        } else {
            let channels = (2 * key_heads + value_heads) * GDN_HEAD;
            t.matrix(&name("attn_qkv.weight"), &[HIDDEN, channels]);
            t.matrix(&name("attn_gate.weight"), &[HIDDEN, value_heads * GDN_HEAD]);
            if arch == "qwen3next" {
                t.matrix(&name("ssm_ba.weight"), &[HIDDEN, 2 * value_heads]);
            } else {
                t.matrix(&name("ssm_beta.weight"), &[HIDDEN, value_heads]);
                t.matrix(&name("ssm_alpha.weight"), &[HIDDEN, value_heads]);
            }
            t.vector(&name("ssm_conv1d.weight"), &[4, channels], |x| 0.5 * x);
            t.vector(&name("ssm_dt.bias"), &[value_heads], |x| x);
            t.vector(&name("ssm_a"), &[value_heads], |x| -1.0 - x);
            t.norm(&name("ssm_norm.weight"), GDN_HEAD);
            t.matrix(&name("ssm_out.weight"), &[value_heads * GDN_HEAD, HIDDEN]);
        }
        if dense {
            t.matrix(&name("ffn_gate.weight"), &[HIDDEN, 512]);
            t.matrix(&name("ffn_up.weight"), &[HIDDEN, 512]);
            t.matrix(&name("ffn_down.weight"), &[512, HIDDEN]);
        } else {
            t.matrix(&name("ffn_gate_inp.weight"), &[HIDDEN, EXPERTS]);
            t.matrix(&name("ffn_gate_exps.weight"), &[HIDDEN, 256, EXPERTS]);
            t.matrix(&name("ffn_up_exps.weight"), &[HIDDEN, 256, EXPERTS]);
            t.matrix(&name("ffn_down_exps.weight"), &[256, HIDDEN, EXPERTS]);
            t.vector(&name("ffn_gate_inp_shexp.weight"), &[HIDDEN], |x| 0.1 * x);
            t.matrix(&name("ffn_gate_shexp.weight"), &[HIDDEN, 96]);
            t.matrix(&name("ffn_up_shexp.weight"), &[HIDDEN, 96]);
            t.matrix(&name("ffn_down_shexp.weight"), &[96, HIDDEN]);
        }
    }
    if streams {
        let wide = STREAMS * HIDDEN;
        t.matrix("blk.1.ple_key.weight", &[256, wide]);
        t.matrix("blk.1.ple_value.weight", &[256, HIDDEN]);
        for role in ["key", "query", "conv"] {
            t.norm(&format!("blk.1.ple_norm_{role}.weight"), wide);
        }
        t.vector("blk.1.ple_conv1d.weight", &[4, wide], |x| 0.5 * x);
    }
    t.writer.to_bytes()
}

fn mixer(t: &mut Tensors, stem: &str, inject: bool) {
    let wide = STREAMS * HIDDEN;
    t.norm(&format!("{stem}_norm.weight"), wide);
    t.matrix(&format!("{stem}_down.weight"), &[wide, 96]);
    t.matrix(&format!("{stem}_up.weight"), &[96, wide]);
    if inject {
        t.matrix(&format!("{stem}_inject.weight"), &[wide, STREAMS]);
    }
}

/// One token a byte, as byte-level vocabularies spell them, and a few that end a turn.
pub fn tokenizer(w: GgufWriter) -> GgufWriter {
    let mut next = 256u32;
    let mut tokens: Vec<String> = (0..=255u8)
        .map(|byte| {
            let printable = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
            let character = if printable {
                u32::from(byte)
            } else {
                next += 1;
                next - 1
            };
            char::from_u32(character).unwrap().to_string()
        })
        .collect();
    tokens.extend((256..VOCAB).map(|i| format!("<|special_{i}|>")));
    let types: Vec<i32> = (0..VOCAB).map(|i| if i < 256 { 1 } else { 3 }).collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    w.kv_str("tokenizer.ggml.model", "gpt2")
        .kv_str("tokenizer.ggml.pre", "qwen2")
        .kv_str_array("tokenizer.ggml.tokens", &tokens)
        .kv_i32_array("tokenizer.ggml.token_type", &types)
        .kv_str_array::<&str>("tokenizer.ggml.merges", &[])
        .kv_u32("tokenizer.ggml.eos_token_id", 263)
}
