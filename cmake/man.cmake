# Run as a script: fills packaging/man/sluice.1.in with the commands' sections that the program prints from
# its option tables, so that page and program cannot disagree.
#   cmake -DPROGRAM=... -DVERSION=... -DTEMPLATE=... -DOUTPUT=... -P cmake/man.cmake
execute_process(COMMAND ${PROGRAM} --man OUTPUT_VARIABLE COMMANDS RESULT_VARIABLE result)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} --man failed: ${result}")
endif()
string(STRIP "${COMMANDS}" COMMANDS)
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
