/* Loads the library, works with it and unloads it, many times: nothing of it stays behind.
 *
 *     unload LIBQCC.SO MODEL */
#include <dlfcn.h>
#include <stdio.h>

#include <qcc/qcc.h>

typedef qcc_status Open(const qcc_context_options *options, qcc_context **context);
typedef void Close(qcc_context *context);
typedef qcc_status Command(qcc_context *context, int argc, const char *const *argv, const qcc_sink *out);

static qcc_status drop(void *user, const void *bytes, size_t n)
{
    (void)user;
    (void)bytes;
    (void)n;
    return QCC_OK;
}

static int work(void *library, const char *model)
{
    Open *open;
    Close *close;
    Command *command;
    qcc_context *cx;
    const qcc_context_options o = { .size = sizeof o };
    const qcc_sink sink = { .write = drop };
    const char *const argv[] = { "qcc", "diff", model, model };
    *(void **)&open = dlsym(library, "qcc_open");
    *(void **)&close = dlsym(library, "qcc_close");
    *(void **)&command = dlsym(library, "qcc_command");
    if (!open || !close || !command || open(&o, &cx) != QCC_OK)
        return 0;
    const qcc_status status = command(cx, 4, argv, &sink);
    close(cx);
    return status == QCC_OK;
}

int main(int argc, char **argv)
{
    for (int i = 0; argc == 3 && i < 50; i++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        if (!work(library, argv[2]) || dlclose(library) != 0) {
            fprintf(stderr, "round %d failed\n", i);
            return 1;
        }
        if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD)) {
            fprintf(stderr, "%s is still there\n", argv[1]);
            return 1;
        }
    }
    return argc != 3;
}
