/*
 * Downloads with libcurl; libsweetspot sizes the window of every connection that libcurl opens.
 *
 * cc -o libcurl examples/libcurl.c $(pkg-config --cflags --libs libcurl sweetspot)
 * ./libcurl http://HOST/FILE > FILE
 */

#include <curl/curl.h>
#include <stdio.h>
#include <sweetspot.h>
#include <unistd.h>

#define MAX_DESCRIPTORS 1024

struct download {
    CURL *curl;
    /* By descriptor: libcurl may try several addresses at once. */
    int64_t sockets[MAX_DESCRIPTORS];
    sweetspot_status status;
};

/* libcurl has made a socket and has not connected it yet. */
static int on_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    struct download *download = context;
    (void)purpose;
    if (fd >= MAX_DESCRIPTORS)
        return CURL_SOCKOPT_ERROR;
    download->sockets[fd] = sweetspot_attach(fd, NULL);
    if (download->sockets[fd] < 0)
        fprintf(stderr, "sized by the kernel: %s\n", sweetspot_strerror(download->sockets[fd]));
    return CURL_SOCKOPT_OK;
}

/* libcurl is done with a socket, which is closed here. */
static int on_close(void *context, curl_socket_t fd)
{
    struct download *download = context;
    sweetspot_detach(download->sockets[fd]);
    return close(fd);
}

static int on_progress(void *context, curl_off_t total, curl_off_t now, curl_off_t up, curl_off_t sent)
{
    struct download *download = context;
    curl_socket_t fd = CURL_SOCKET_BAD;
    (void)total, (void)now, (void)up, (void)sent;
    /* The last state is kept when the connection is closed. */
    if (curl_easy_getinfo(download->curl, CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK && fd != CURL_SOCKET_BAD)
        sweetspot_report(download->sockets[fd], &download->status);
    return 0;
}

int main(int argc, char **argv)
{
    struct download download = { .status = { .struct_size = sizeof download.status } };
    if (argc != 2) {
        fprintf(stderr, "usage: %s URL\n", argv[0]);
        return 2;
    }
    CURL *curl = download.curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, argv[1]);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, on_socket);
    curl_easy_setopt(curl, CURLOPT_SOCKOPTDATA, &download);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETDATA, &download);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &download);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    CURLcode code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        fprintf(stderr, "%s, limited by %s\n", sweetspot_phase_name(download.status.phase),
                sweetspot_limit_name(download.status.limiting_factor));
    else
        fprintf(stderr, "%s\n", curl_easy_strerror(code));
    curl_easy_cleanup(curl);
    return code != CURLE_OK;
}
