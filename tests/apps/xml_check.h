/* A strict look at small XML documents: what a reader would refuse. */
#ifndef TEST_XML_CHECK_H
#define TEST_XML_CHECK_H

#include <stddef.h>

/*
 * NULL if the text is one well-formed element with balanced tags, quoted and unrepeated attribute syntax, and nothing
 * unescaped; otherwise where it is not. Knows elements, attributes, text and the five predefined entities, which is all
 * that Sluice writes.
 */
const char *xml_find_fault(const char *text);

/* How often `needle` is in `text`. */
size_t count_of(const char *text, const char *needle);

#endif
