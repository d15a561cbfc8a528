use super::*;

macro_rules! vector {
    ($format:ident, $name:literal) => {
        (
            Format::$format,
            include_bytes!(concat!("../../tests/data/dequant/", $name, ".bin")).as_slice(),
            include_bytes!(concat!("../../tests/data/dequant/", $name, ".f32")).as_slice(),
        )
    };
}

const VECTORS: [(Format, &[u8], &[u8]); 24] = [
    vector!(F32, "f32"),
    vector!(F16, "f16"),
    vector!(BF16, "bf16"),
    vector!(Q8_0, "q8_0"),
    vector!(Q4_0, "q4_0"),
    vector!(Q5_K, "q5_k"),
    vector!(Q6_K, "q6_k"),
    vector!(IQ4_NL, "iq4_nl"),
    vector!(IQ2_S, "iq2_s"),
    vector!(IQ3_S, "iq3_s"),
    vector!(IQ3_XXS, "iq3_xxs"),
    vector!(Q4_1, "q4_1"),
    vector!(Q5_0, "q5_0"),
    vector!(Q5_1, "q5_1"),
    vector!(Q2_K, "q2_k"),
    vector!(Q3_K, "q3_k"),
    vector!(Q4_K, "q4_k"),
    vector!(IQ1_S, "iq1_s"),
    vector!(IQ1_M, "iq1_m"),
    vector!(IQ2_XXS, "iq2_xxs"),
    vector!(IQ2_XS, "iq2_xs"),
    vector!(IQ4_XS, "iq4_xs"),
    vector!(MXFP4, "mxfp4"),
    vector!(NVFP4, "nvfp4"),
];

#[test]
fn every_format_decodes_bit_for_bit() {
    assert!(Format::ALL.into_iter().all(|format| VECTORS.iter().any(|vector| vector.0 == format)));
    for (format, bytes, expected) in VECTORS {
        let expected: Vec<u32> = expected.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let mut out = vec![0.0; expected.len()];
        decode_row(format, bytes, &mut out).unwrap();
        for (i, (found, expected)) in out.iter().zip(&expected).enumerate() {
            assert_eq!(found.to_bits(), *expected, "{} element {i}", format.name());
        }
    }
}

#[test]
fn formats_agree_with_the_type_table() {
    for format in Format::ALL {
        let id = format.ggml_id();
        assert_eq!(Format::from_ggml_id(id), Some(format));
        assert_eq!(ggml_type_name(id), Some(format.name()));
        assert_eq!(ggml_type_layout(id), Some((format.block_elements() as u64, format.block_bytes() as u64)));
    }
    for (id, name) in [(9, "Q8_1"), (15, "Q8_K"), (26, "I32"), (34, "TQ1_0"), (35, "TQ2_0"), (41, "Q1_0"), (42, "Q2_0")]
    {
        assert_eq!((Format::from_ggml_id(id), ggml_type_name(id)), (None, Some(name)));
    }
    for id in [4, 5, 31, 33, 36, 38, 43, u32::MAX] {
        assert_eq!((ggml_type_name(id), ggml_type_layout(id)), (None, None), "id {id}");
    }
}

#[test]
fn rows_of_the_wrong_length_are_refused() {
    let mut out = [7.0; 33];
    let partial = decode_row(Format::Q8_0, &[0; 34], &mut out).unwrap_err();
    assert_eq!(partial.to_string(), "Q8_0 row: expected a multiple of 32 elements, found 33");
    let short = decode_row(Format::Q8_0, &[0; 33], &mut out[..32]).unwrap_err();
    assert_eq!(short.to_string(), "Q8_0 row of 32 elements: expected 34 bytes, found 33");
    assert_eq!(out, [7.0; 33]);
    assert_eq!(decode_row(Format::IQ2_S, &[], &mut []), Ok(()));
    assert_eq!(Format::F32.row_bytes(u64::MAX), None);
    assert_eq!(Format::Q5_K.row_bytes(512), Some(352));
}

#[test]
fn codebooks_use_the_published_alphabets() {
    for grid in [&IQ2_S_GRID[..], &IQ2_XS_GRID, &IQ2_XXS_GRID] {
        assert!(grid.iter().flat_map(|row| row.to_le_bytes()).all(|code| [8, 25, 43].contains(&code)));
    }
    assert!(IQ1_GRID.iter().flat_map(|row| row.to_le_bytes()).all(|code| [-1, 0, 1].contains(&(code as i8))));
    let eighths = [4, 12, 20, 28, 36, 44, 52, 62];
    assert!(IQ3_XXS_GRID.iter().flat_map(|row| row.to_le_bytes()).all(|code| eighths.contains(&code)));
    assert!(IQ3_S_GRID.iter().flat_map(|row| row.to_le_bytes()).all(|code| code % 2 == 1 && code < 16));
}
