/*
 * Downloads with libcurl; libsweetspot sizes the window of every connection that libcurl opens.
 *
 * cc -o libcurl examples/libcurl.c $(pkg-config --cflags --libs libcurl sweetspot)
 * ./libcurl http://HOST/FILE [SIZING] > FILE
 */

#include <curl/curl.h>
#include <stdio.h>
#include <sweetspot.h>
#include <unistd.h>

#define MAX_DESCRIPTORS 1024

struct download {
    /* Indexed by descriptor: libcurl may try several addresses at once. */
    int64_t sockets[MAX_DESCRIPTORS];
    sweetspot_options options;
    sweetspot_status status;
};

/* Called when libcurl has created a socket that is not connected yet. */
static int on_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    struct download *download = context;
    (void)purpose;
    if (fd >= MAX_DESCRIPTORS)
        return CURL_SOCKOPT_ERROR;
    download->sockets[fd] = sweetspot_attach(fd, &download->options);
    if (download->sockets[fd] < 0)
        fprintf(stderr, "sized by the kernel: %s\n", sweetspot_strerror(download->sockets[fd]));
    return CURL_SOCKOPT_OK;
}

/* Called when libcurl no longer needs a socket, which is closed here. */
static int on_close(void *context, curl_socket_t fd)
{
    struct download *download = context;
    sweetspot_status status = { .struct_size = sizeof status };
    /* The state of the socket that received the file. */
    if (sweetspot_report(download->sockets[fd], &status) == SWEETSPOT_OK && status.received > download->status.received)
        download->status = status;
    sweetspot_detach(download->sockets[fd]);
    return close(fd);
}

int main(int argc, char **argv)
{
    struct download download = { .options = { .struct_size = sizeof download.options },
                                 .status = { .struct_size = sizeof download.status } };
    if (argc < 2) {
        fprintf(stderr, "usage: %s URL [SIZING]\n", argv[0]);
        return 2;
    }
    if (argc > 2)
        download.options.sizing = argv[2];
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, argv[1]);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, on_socket);
    curl_easy_setopt(curl, CURLOPT_SOCKOPTDATA, &download);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETDATA, &download);
    CURLcode code = curl_easy_perform(curl);
    /* Closes the connection. */
    curl_easy_cleanup(curl);
    if (code == CURLE_OK)
        fprintf(stderr, "%s, limited by %s\n", sweetspot_phase_name(download.status.phase),
                sweetspot_limit_name(download.status.limiting_factor));
    else
        fprintf(stderr, "%s\n", curl_easy_strerror(code));
    return code != CURLE_OK;
}
