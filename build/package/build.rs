//! Where the packaged program finds the runtime libraries: beside itself, whatever else is installed.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The old kind of rpath also serves the libraries that libOpenCL needs, which name no folder.
    let rpath = "-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib/bankshot";
    println!("cargo:rustc-link-arg-bin=bankshot-packaged={rpath}");
}
