//! Writes small GGUF files for tests, valid ones unless the test asks for something else.

// Each test program uses a part of it.
#![allow(dead_code)]

/// Value type ids of the container.
pub const U8: u32 = 0;
pub const I8: u32 = 1;
pub const U16: u32 = 2;
pub const I16: u32 = 3;
pub const U32: u32 = 4;
pub const I32: u32 = 5;
pub const F32: u32 = 6;
pub const BOOL: u32 = 7;
pub const STRING: u32 = 8;
pub const ARRAY: u32 = 9;
pub const U64: u32 = 10;
pub const I64: u32 = 11;
pub const F64: u32 = 12;

/// Collects metadata and tensors, in the order of the calls.
#[derive(Clone)]
pub struct GgufWriter {
    version: u32,
    alignment: usize,
    pairs: Vec<(String, u32, Vec<u8>)>,
    tensors: Vec<Tensor>,
}

#[derive(Clone)]
struct Tensor {
    name: String,
    dims: Vec<u64>,
    ggml_type: u32,
    data: Vec<u8>,
    bytes: usize,
}

/// Byte offsets of the parts of a written file.
pub struct Marks {
    /// Start of each metadata pair: its key's length.
    pub pairs: Vec<usize>,
    /// Start of each pair's value type; the value follows 4 bytes later.
    pub types: Vec<usize>,
    /// Start of the tensor directory.
    pub directory: usize,
    /// Start of each tensor directory entry: its name's length.
    pub tensors: Vec<usize>,
    /// Start of each entry's dimension count.
    pub dims: Vec<usize>,
    /// Each entry's data offset, its last field.
    pub offsets: Vec<usize>,
    /// Start of the tensor data.
    pub data: usize,
}

macro_rules! numbers {
    ($($scalar:ident $array:ident $type:ident $id:ident;)*) => {
        $(pub fn $scalar(self, key: &str, value: $type) -> GgufWriter {
            self.kv_raw(key, $id, &value.to_le_bytes())
        }

        pub fn $array(self, key: &str, values: &[$type]) -> GgufWriter {
            let elements: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            self.array(key, $id, values.len(), &elements)
        })*
    };
}

impl GgufWriter {
    /// A version 3 file with `general.architecture` as its first pair.
    pub fn new(arch: &str) -> GgufWriter {
        let empty = GgufWriter { version: 3, alignment: 32, pairs: Vec::new(), tensors: Vec::new() };
        empty.kv_str("general.architecture", arch)
    }

    pub fn version(self, version: u32) -> GgufWriter {
        GgufWriter { version, ..self }
    }

    /// Sets the alignment of the data and writes the key for it.
    pub fn alignment(self, alignment: u32) -> GgufWriter {
        let writer = self.kv_u32("general.alignment", alignment);
        GgufWriter { alignment: alignment as usize, ..writer }
    }

    numbers! {
        kv_u8 kv_u8_array u8 U8;
        kv_i8 kv_i8_array i8 I8;
        kv_u16 kv_u16_array u16 U16;
        kv_i16 kv_i16_array i16 I16;
        kv_u32 kv_u32_array u32 U32;
        kv_i32 kv_i32_array i32 I32;
        kv_u64 kv_u64_array u64 U64;
        kv_i64 kv_i64_array i64 I64;
        kv_f32 kv_f32_array f32 F32;
        kv_f64 kv_f64_array f64 F64;
    }

    pub fn kv_bool(self, key: &str, value: bool) -> GgufWriter {
        self.kv_raw(key, BOOL, &[u8::from(value)])
    }

    pub fn kv_bool_array(self, key: &str, values: &[bool]) -> GgufWriter {
        let elements: Vec<u8> = values.iter().map(|value| u8::from(*value)).collect();
        self.array(key, BOOL, values.len(), &elements)
    }

    pub fn kv_str(self, key: &str, value: &str) -> GgufWriter {
        self.kv_raw(key, STRING, &string(value))
    }

    pub fn kv_str_array<S: AsRef<str>>(self, key: &str, values: &[S]) -> GgufWriter {
        let elements: Vec<u8> = values.iter().flat_map(|value| string(value.as_ref())).collect();
        self.array(key, STRING, values.len(), &elements)
    }

    /// Takes a pair out again.
    pub fn without(mut self, key: &str) -> GgufWriter {
        self.pairs.retain(|(other, ..)| other != key);
        self
    }

    /// A pair with any type id and any bytes as its value.
    pub fn kv_raw(mut self, key: &str, value_type: u32, value: &[u8]) -> GgufWriter {
        self.pairs.push((key.to_owned(), value_type, value.to_vec()));
        self
    }

    /// A tensor; `dims` has the fastest dimension first.
    pub fn tensor(mut self, name: &str, dims: &[u64], ggml_type: u32, data: &[u8]) -> GgufWriter {
        let (name, dims, data, bytes) = (name.to_owned(), dims.to_vec(), data.to_vec(), data.len());
        self.tensors.push(Tensor { name, dims, ggml_type, data, bytes });
        self
    }

    /// A tensor whose data stays unwritten. The written bytes then end with the header, and the file has to be made
    /// [`file_bytes`](Self::file_bytes) long; all other tensors must be like it.
    pub fn hole(mut self, name: &str, dims: &[u64], ggml_type: u32, bytes: usize) -> GgufWriter {
        let (name, dims) = (name.to_owned(), dims.to_vec());
        self.tensors.push(Tensor { name, dims, ggml_type, data: Vec::new(), bytes });
        self
    }

    /// Length of the whole file.
    pub fn file_bytes(&self) -> u64 {
        let data: usize = self.tensors.iter().map(|tensor| self.aligned(tensor.bytes)).sum();
        (self.to_bytes_with_marks().1.data + data) as u64
    }

    /// A tensor of `f32` values.
    pub fn tensor_f32(self, name: &str, dims: &[u64], values: &[f32]) -> GgufWriter {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensor(name, dims, 0, &data)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_with_marks().0
    }

    /// The file, and where its parts lie.
    pub fn to_bytes_with_marks(&self) -> (Vec<u8>, Marks) {
        let mut marks = Marks {
            pairs: vec![],
            types: vec![],
            directory: 0,
            tensors: vec![],
            dims: vec![],
            offsets: vec![],
            data: 0,
        };
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.pairs.len() as u64).to_le_bytes());
        for (key, value_type, value) in &self.pairs {
            marks.pairs.push(out.len());
            out.extend(string(key));
            marks.types.push(out.len());
            out.extend(value_type.to_le_bytes());
            out.extend(value);
        }
        marks.directory = out.len();
        let mut offset = 0;
        for tensor in &self.tensors {
            marks.tensors.push(out.len());
            out.extend(string(&tensor.name));
            marks.dims.push(out.len());
            out.extend((tensor.dims.len() as u32).to_le_bytes());
            for dim in &tensor.dims {
                out.extend(dim.to_le_bytes());
            }
            out.extend(tensor.ggml_type.to_le_bytes());
            marks.offsets.push(out.len());
            out.extend((offset as u64).to_le_bytes());
            offset += self.aligned(tensor.bytes);
        }
        marks.data = self.aligned(out.len());
        out.resize(marks.data, 0);
        for tensor in &self.tensors {
            out.extend(&tensor.data);
            out.resize(self.aligned(out.len()), 0);
        }
        (out, marks)
    }

    fn array(self, key: &str, element_type: u32, count: usize, elements: &[u8]) -> GgufWriter {
        let mut value = element_type.to_le_bytes().to_vec();
        value.extend((count as u64).to_le_bytes());
        value.extend(elements);
        self.kv_raw(key, ARRAY, &value)
    }

    /// Rounds up; an alignment of 0, which only broken files have, leaves the position as it is.
    fn aligned(&self, position: usize) -> usize {
        position.checked_next_multiple_of(self.alignment).unwrap_or(position)
    }
}

fn string(text: &str) -> Vec<u8> {
    let mut out = (text.len() as u64).to_le_bytes().to_vec();
    out.extend(text.as_bytes());
    out
}
