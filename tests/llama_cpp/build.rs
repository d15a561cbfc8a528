//! Lets the program find the SYCL runtime that Bankshot was built with.

fn main() {
    let lib = std::env::var("DEP_BANKSHOT_XK_LIB").expect("Bankshot's build script names the runtime's folder");
    println!("cargo:rustc-link-arg=-Wl,--disable-new-dtags,-rpath,{lib}");
}
