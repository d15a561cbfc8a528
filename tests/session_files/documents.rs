//! `docs/sessions.md` and `docs/numerics.md` say what the code does.

use std::path::Path;

use bankshot::gguf::GgufFile;
use bankshot::model::{Bound, KvType};
use bankshot::plan::{Options, Plan};
use bankshot::state::{
    CHAIN_MAX, CONTRACT_VERSION, END, Encoding, FORMAT_VERSION, Field, HEADER, IDENTITY_FIELD, Identity, Layout,
    NOTES_BYTES_MAX, PREFIX, SECTION, SectionExtent, SectionKind,
};
use tempfile::tempdir;

use super::shapes::{header_only, published};

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The cells of the first table below a heading, without its head.
fn table(heading: &str) -> Vec<Vec<String>> {
    let page = page("docs/sessions.md");
    let below = page.split_once(&format!("# {heading}\n")).unwrap_or_else(|| panic!("no heading {heading}")).1;
    let rows = below.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.skip(2).map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[test]
fn the_tables_of_the_format_are_the_codes() {
    let tables: [(&str, &[Field]); 5] = [
        ("Prefix", &PREFIX),
        ("Header", &HEADER),
        ("Identity field", &IDENTITY_FIELD),
        ("Section", &SECTION),
        ("End mark", &END),
    ];
    for (heading, fields) in tables {
        let mut offset = 0;
        let mut expected = Vec::new();
        for (name, bytes) in fields {
            expected.push([offset.to_string(), bytes.to_string(), name.to_string()]);
            offset += bytes;
        }
        let found = table(heading);
        let found: Vec<&[String]> = found.iter().map(|row| &row[..3]).collect();
        assert_eq!(found, expected, "{heading}");
    }
    let numbered = |heading: &str, expected: Vec<(u64, &str)>| {
        let expected: Vec<[String; 2]> = expected.iter().map(|(n, name)| [n.to_string(), (*name).to_owned()]).collect();
        let found = table(heading);
        let found: Vec<&[String]> = found.iter().map(|row| &row[..2]).collect();
        assert_eq!(found, expected, "{heading}");
    };
    numbered("Kinds of sections", SectionKind::ALL.map(|kind| (kind.number().into(), kind.name())).to_vec());
    numbered("Extents", SectionExtent::ALL.map(|extent| (extent.number().into(), extent.name())).to_vec());
    numbered("Encodings", Encoding::ALL.map(|encoding| (encoding.number().into(), encoding.name())).to_vec());
    numbered("Identity", (1..).zip(Identity::FIELDS).collect());
    let page = page("docs/sessions.md");
    let mib = NOTES_BYTES_MAX >> 20;
    for said in
        [format!("format version {FORMAT_VERSION}"), format!("at most {mib} MiB"), format!("at most {CHAIN_MAX} files")]
    {
        assert!(page.contains(&said), "{said}");
    }
}

#[test]
fn the_contract_has_the_version_that_identities_have() {
    assert!(page("docs/numerics.md").lines().any(|line| line == format!("Version {CONTRACT_VERSION}.")));
}

#[test]
fn sizes_of_published_models_are_right() {
    let names = ["Qwen3.8-Flash-Next", "Qwen3.8-27B", "Qwen3.5-35B-A3B", "Qwen3-Next-80B-A3B"];
    let dir = tempdir().unwrap();
    let rows = names.iter().zip(published()).map(|(name, shape)| {
        let path = dir.path().join("model.gguf");
        header_only(&shape, |_| 8).write(&path);
        let bound = Bound::new(&GgufFile::open(&path).unwrap()).unwrap();
        let layout = |kv| Layout::of(&Plan::new(&bound, Options::new(262_144, 256, kv)).unwrap());
        let (half, single) = (layout(KvType::F16), layout(KvType::F32));
        assert_eq!(half.fixed_bytes(), single.fixed_bytes());
        assert_eq!(2 * half.row_bytes(0, 262_144), single.row_bytes(0, 262_144));
        let mb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
        let whole = |tokens| mb(half.fixed_bytes() + half.row_bytes(0, tokens));
        let per_token = format!("{:.1}", half.row_bytes(0, 1000) as f64 / 1e6);
        vec![name.to_string(), mb(half.fixed_bytes()), per_token, whole(32_768), whole(262_144)]
    });
    assert_eq!(table("Sizes"), rows.collect::<Vec<_>>());
}
