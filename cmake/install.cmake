# Filled with the install rules of library, headers, program, pkg-config file and man page.
