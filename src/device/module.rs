//! Kernel modules on a card.

use super::kernels::ModuleCode;
use super::status::check;
use super::{Card, DeviceError, cache, sys};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Debug)]
struct ModuleInner {
    raw: NonNull<sys::xk_module>,
    name: &'static str,
    from_cache: bool,
    card: Card,
}

// SAFETY: a module does not change after its creation, and the ABI lets any thread look up its kernels.
unsafe impl Send for ModuleInner {}
// SAFETY: as above.
unsafe impl Sync for ModuleInner {}

impl Drop for ModuleInner {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and is used no more; the call waits for kernels that still run.
        unsafe { sys::xk_module_destroy(self.raw.as_ptr()) };
    }
}

/// Kernels that are ready to run on a card.
#[derive(Debug, Clone)]
pub struct Module(Arc<ModuleInner>);

impl Module {
    /// Builds a module, or loads what an earlier start left in the cache folder.
    pub fn new(card: &Card, code: &ModuleCode, cache: Option<&Path>) -> Result<Self, DeviceError> {
        let path = cache.map(|base| cache::module_path(base, card.info(), code));
        if let Some(folder) = path.as_deref().and_then(Path::parent) {
            // A cache that cannot be made costs time at the next start, and nothing else.
            let _ = std::fs::create_dir_all(folder);
        }
        let c_path = path.and_then(|p| CString::new(p.as_os_str().as_bytes()).ok());
        let text = |s: &str| CString::new(s).expect("names of kernels have no zero bytes");
        let (name, hash) = (text(code.name), text(code.hash));
        let names: Vec<CString> = code.kernels.iter().map(|k| text(k)).collect();
        let pointers: Vec<_> = names.iter().map(|n| n.as_ptr()).collect();
        let spirv = code.spirv_for(card.info().is_cpu);
        let desc = sys::xk_module_desc {
            struct_size: size_of::<sys::xk_module_desc>() as u32,
            kernel_count: pointers.len() as u32,
            name: name.as_ptr(),
            kernel_names: pointers.as_ptr(),
            spirv: spirv.as_ptr().cast(),
            spirv_bytes: spirv.len() as u64,
            source: code.source.as_ptr().cast(),
            source_bytes: code.source.len() as u64,
            hash: hash.as_ptr(),
            cache_path: c_path.as_ref().map_or(std::ptr::null(), |p| p.as_ptr()),
        };
        let mut raw = null_mut();
        // SAFETY: the card is live, and everything that the struct points to lives until the end of this function.
        check(unsafe { sys::xk_module_create(card.raw(), &desc, &mut raw) })?;
        let raw = NonNull::new(raw).expect("xk_module_create gives a module with XK_OK");
        let mut from_cache = 0;
        // SAFETY: the module is live and the out-pointer is to a live number; with both, the call cannot fail.
        check(unsafe { sys::xk_module_from_cache(raw.as_ptr(), &mut from_cache) })?;
        Ok(Self(Arc::new(ModuleInner { raw, name: code.name, from_cache: from_cache == 1, card: card.clone() })))
    }

    /// Builds several modules on `threads` threads; they come in the order asked for.
    pub fn new_all(
        card: &Card,
        codes: &[&ModuleCode],
        cache: Option<&Path>,
        threads: usize,
    ) -> Result<Vec<Self>, DeviceError> {
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<Option<Result<Self, DeviceError>>>> = Mutex::new(codes.iter().map(|_| None).collect());
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, codes.len().max(1)) {
                scope.spawn(|| {
                    while let Some((index, code)) = {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        codes.get(index).map(|code| (index, code))
                    } {
                        let module = Self::new(card, code, cache);
                        done.lock().expect("no thread panics with the lock")[index] = Some(module);
                    }
                });
            }
        });
        let done = done.into_inner().expect("no thread panics with the lock");
        done.into_iter().map(|module| module.expect("every index is taken once")).collect()
    }

    pub fn name(&self) -> &'static str {
        self.0.name
    }

    pub fn card(&self) -> &Card {
        &self.0.card
    }

    /// Whether the device's code came from the cache folder.
    pub fn is_from_cache(&self) -> bool {
        self.0.from_cache
    }

    pub fn kernel(&self, name: &str) -> Result<Kernel, DeviceError> {
        let c_name = CString::new(name).unwrap_or_default();
        let mut raw = null_mut();
        // SAFETY: the module and the name are live, and the out-pointer is to a live pointer.
        check(unsafe { sys::xk_module_kernel(self.0.raw.as_ptr(), c_name.as_ptr(), &mut raw) })?;
        let raw = NonNull::new(raw).expect("xk_module_kernel gives a kernel with XK_OK");
        Ok(Kernel { raw, module: self.clone() })
    }

    pub(super) fn is(&self, other: &Module) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A kernel, which keeps its module alive.
#[derive(Debug, Clone)]
pub struct Kernel {
    raw: NonNull<sys::xk_kernel>,
    module: Module,
}

// SAFETY: the handle only goes into launches, which read it and which the ABI allows from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// For the argument structs of op calls.
    pub fn raw(&self) -> *mut sys::xk_kernel {
        self.raw.as_ptr()
    }
}
