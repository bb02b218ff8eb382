/* Marks what libsluice exports: everything else stays inside the shared library. */
#ifndef SLUICE_API_H
#define SLUICE_API_H

#if defined(__GNUC__) && !defined(_WIN32)
#define SL_API __attribute__((visibility("default")))
#else
#define SL_API
#endif

#endif
