//! What C hands over, checked before it is used. Making one of these is the unsafe part, and promises what the header asks of the caller; all else is
//! safe.

use std::ffi::c_char;
use std::marker::PhantomData;

use super::status::{BANKSHOT_ERR_BUFFER, BANKSHOT_ERR_STRUCT, BANKSHOT_ERR_UNSUPPORTED, Failure};

/// Largest struct that a later header could have. More is no size.
const STRUCT_BYTES_MAX: usize = 4096;

/// A struct whose first field says its size.
///
/// # Safety
/// It is `repr(C)` without padding, its first field is the `u32` `struct_size`, and zero bytes are a value of it.
pub unsafe trait Sized32: Copy {
    /// Its size in version 1.0.
    const LEAST: usize;
}

/// A handle.
pub struct Handle<'a, T>(Option<&'a T>);

impl<'a, T> Handle<'a, T> {
    /// # Safety
    /// The pointer is null, or to a live handle which is not destroyed before the call ends.
    pub unsafe fn new(pointer: *const T) -> Self {
        // SAFETY: promised by the caller.
        Handle(unsafe { pointer.as_ref() })
    }

    pub fn get(self) -> Option<&'a T> {
        self.0
    }
}

/// Values that are read.
#[derive(Clone, Copy)]
pub struct List<'a, T> {
    first: *const T,
    count: u64,
    life: PhantomData<&'a [T]>,
}

impl<'a, T: Copy> List<'a, T> {
    /// # Safety
    /// The pointer is null, or to as many values, which nobody changes before the call ends.
    pub unsafe fn new(first: *const T, count: u64) -> Self {
        List { first, count, life: PhantomData }
    }

    pub fn get(self, what: &str) -> Result<&'a [T], Failure> {
        if self.count == 0 {
            return Ok(&[]);
        }
        if self.first.is_null() {
            return Err(Failure::null(what));
        }
        check_aligned(self.first, what)?;
        let most = isize::MAX as usize / size_of::<T>();
        let Some(count) = usize::try_from(self.count).ok().filter(|count| *count <= most) else {
            return Err(Failure::value(what, &format!("at most {most} values"), self.count));
        };
        // SAFETY: not null, aligned and not too long; that the values are there is promised.
        Ok(unsafe { std::slice::from_raw_parts(self.first, count) })
    }
}

impl<'a> List<'a, u8> {
    /// # Safety
    /// As of [`List::new`].
    pub unsafe fn text(first: *const c_char, bytes: u64) -> Self {
        // SAFETY: promised by the caller.
        unsafe { List::new(first.cast(), bytes) }
    }

    /// The bytes as text.
    pub fn utf8(self, what: &str) -> Result<&'a str, Failure> {
        std::str::from_utf8(self.get(what)?)
            .map_err(|error| Failure::value(what, "UTF-8", format!("another byte at {}", error.valid_up_to())))
    }

    /// The bytes as text that has to be there.
    pub fn named(self, what: &str) -> Result<&'a str, Failure> {
        if self.first.is_null() {
            return Err(Failure::null(what));
        }
        self.utf8(what)
    }

    /// The bytes as text, if there is a pointer.
    pub fn optional(self, what: &str) -> Result<Option<&'a str>, Failure> {
        if self.first.is_null() && self.count == 0 { Ok(None) } else { self.named(what).map(Some) }
    }
}

/// A place for one value.
pub struct Out<'a, T> {
    place: *mut T,
    life: PhantomData<&'a mut T>,
}

impl<T> Out<'_, T> {
    /// # Safety
    /// The pointer is null, or to a place that nobody else uses before the call ends.
    pub unsafe fn new(place: *mut T) -> Self {
        Out { place, life: PhantomData }
    }

    /// Whether the value can be written, which is asked before anything is done.
    pub fn check(&self, what: &str) -> Result<(), Failure> {
        if self.place.is_null() {
            return Err(Failure::null(what));
        }
        check_aligned(self.place, what)
    }

    pub fn write(&self, what: &str, value: T) -> Result<(), Failure> {
        self.check(what)?;
        // SAFETY: neither null nor misaligned; that it is a place for a value is promised.
        unsafe { self.place.write(value) };
        Ok(())
    }
}

/// A buffer of the caller's, with a place for how many values there are.
pub struct Buffer<'a, T> {
    first: *mut T,
    cap: usize,
    needed: Out<'a, usize>,
}

impl<T: Copy> Buffer<'_, T> {
    /// # Safety
    /// The pointers are null, or to `cap` places and to one, which nobody else uses before the call ends.
    pub unsafe fn new(first: *mut T, cap: usize, needed: *mut usize) -> Self {
        // SAFETY: promised by the caller.
        Buffer { first, cap, needed: unsafe { Out::new(needed) } }
    }

    /// Whether something can be written, which is asked before anything is done.
    pub fn check(&self) -> Result<(), Failure> {
        self.needed.check("needed")?;
        if self.cap > 0 && self.first.is_null() {
            return Err(Failure::null("buffer"));
        }
        check_aligned(self.first, "buffer")
    }

    /// Without room only the count is written.
    pub fn fill(&self, values: &[T]) -> Result<(), Failure> {
        self.check()?;
        if self.cap > 0 {
            if values.len() > self.cap {
                let text = format!("buffer: expected room for {}, got room for {}", values.len(), self.cap);
                return Err(Failure::new(BANKSHOT_ERR_BUFFER, text));
            }
            // SAFETY: the buffer is not null, aligned and has room; the values are not in it, as nobody else uses it.
            unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.first, values.len()) };
        }
        self.needed.write("needed", values.len())
    }
}

impl<'a> Buffer<'a, u8> {
    /// # Safety
    /// As of [`Buffer::new`].
    pub unsafe fn text(first: *mut c_char, cap: usize, needed: *mut usize) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Buffer::new(first.cast(), cap, needed) }
    }
}

/// A sized struct of the caller's.
#[derive(Clone, Copy)]
pub struct Struct<'a, T> {
    place: *mut T,
    life: PhantomData<&'a T>,
}

impl<T: Sized32> Struct<'_, T> {
    /// # Safety
    /// The pointer is null, or to as many bytes as its first field says, which nobody changes before the call ends.
    pub unsafe fn new(place: *mut T) -> Self {
        Struct { place, life: PhantomData }
    }

    pub fn is_null(self) -> bool {
        self.place.is_null()
    }

    /// What the caller says of the size.
    pub fn size(self, what: &str) -> Result<usize, Failure> {
        if self.place.is_null() {
            return Err(Failure::null(what));
        }
        check_aligned(self.place, what)?;
        // SAFETY: neither null nor misaligned, and the first field is readable, as is promised.
        let size = unsafe { self.place.cast::<u32>().read() } as usize;
        if !(T::LEAST..=STRUCT_BYTES_MAX).contains(&size) {
            let text = format!("{what}: struct_size: expected at least {}, got {size}", T::LEAST);
            return Err(Failure::new(BANKSHOT_ERR_STRUCT, text));
        }
        Ok(size)
    }

    /// The struct; what an older caller does not have is zero.
    pub fn read(self, what: &str) -> Result<T, Failure> {
        let size = self.size(what)?;
        let known = size.min(size_of::<T>());
        let bytes = self.place.cast::<u8>().cast_const();
        // SAFETY: zero bytes are a value of every such struct.
        let mut value: T = unsafe { std::mem::zeroed() };
        // SAFETY: the caller's struct has at least `known` bytes, as is promised, and so has ours.
        unsafe { std::ptr::copy_nonoverlapping(bytes, (&raw mut value).cast(), known) };
        // SAFETY: the caller's struct has `size` bytes, as is promised.
        let all = unsafe { std::slice::from_raw_parts(bytes, size) };
        if let Some(at) = all[known..].iter().position(|byte| *byte != 0) {
            let text = format!(
                "{what}: expected zeros behind the {} bytes that this version knows, got another byte at {}",
                known,
                known + at
            );
            return Err(Failure::new(BANKSHOT_ERR_UNSUPPORTED, text));
        }
        Ok(value)
    }

    /// Fills the struct and keeps its size; what only a newer caller has becomes zero.
    pub fn write(self, what: &str, value: T) -> Result<(), Failure> {
        let size = self.size(what)?;
        let known = size.min(size_of::<T>());
        let header = size_of::<u32>();
        let bytes = self.place.cast::<u8>();
        // SAFETY: the caller's struct has `size` bytes, and nobody else uses them, as is promised.
        let all = unsafe { std::slice::from_raw_parts_mut(bytes, size) };
        // SAFETY: a struct without padding is as many initialised bytes.
        let ours = unsafe { std::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<T>()) };
        all[header..known].copy_from_slice(&ours[header..known]);
        all[known..].fill(0);
        Ok(())
    }
}

fn check_aligned<T>(pointer: *const T, what: &str) -> Result<(), Failure> {
    if pointer.is_aligned() {
        return Ok(());
    }
    Err(Failure::value(what, &format!("an address that is a multiple of {}", align_of::<T>()), format!("{pointer:p}")))
}
