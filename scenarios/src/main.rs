//! The `mirrorlab` program.

fn main() -> std::process::ExitCode {
    mirrorlab_scenarios::cli::main()
}
