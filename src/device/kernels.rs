//! The device code that was compiled into this program.

/// One kernel module: the same code as SPIR-V and as text.
#[derive(Debug, Clone, Copy)]
pub struct ModuleCode {
    pub name: &'static str,
    /// Changes whenever the code does.
    pub hash: &'static str,
    /// Names of the kernels, sorted.
    pub kernels: &'static [&'static str],
    pub spirv: &'static [u8],
    /// The same as it is better compiled for cards, if that is not the same.
    pub card_spirv: Option<&'static [u8]>,
    /// Complete source, for backends that take no SPIR-V.
    pub source: &'static str,
}

impl ModuleCode {
    /// The SPIR-V for a device of that kind.
    pub fn spirv_for(&self, is_cpu: bool) -> &'static [u8] {
        self.card_spirv.filter(|_| !is_cpu).unwrap_or(self.spirv)
    }
}

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// The module of that name, if this build has it.
pub fn find(name: &str) -> Option<&'static ModuleCode> {
    MODULES.iter().find(|m| m.name == name)
}
