#include "cli/cli.h"

int main(int argc, char** argv) { return ringshift::cli::run(argc, argv); }
