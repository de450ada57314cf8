//! The command `tokkuri`; everything it does is in the library.

fn main() -> std::process::ExitCode {
    tokkuri_server::cli::main()
}
