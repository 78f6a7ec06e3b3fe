/* The files page.css and page.js, embedded. */
#ifndef FRONTENDS_VIEW_PAGE_H
#define FRONTENDS_VIEW_PAGE_H

extern const char view_page_css[];
extern const char view_page_js[];

#endif
