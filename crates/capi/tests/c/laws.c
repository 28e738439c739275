/* Checks the laws of sweetspot.h from C. If one fails, prints its line and exits with 1. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sweetspot.h"

#define HOLDS(condition)                                                      \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);           \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

static struct sockaddr_in address;
static int listener;

static void listen_on_loopback(void)
{
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    HOLDS(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    HOLDS(listen(listener, 64) == 0);
    HOLDS(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
}

static void pair(int *near, int *far)
{
    *near = socket(AF_INET, SOCK_STREAM, 0);
    HOLDS(connect(*near, (struct sockaddr *)&address, sizeof address) == 0);
    *far = accept(listener, NULL, NULL);
    HOLDS(*far >= 0);
}

static int report(int64_t number)
{
    sweetspot_status status = { .struct_size = sizeof status };
    return sweetspot_report(number, &status);
}

static void refuses_what_is_no_tcp_connection(void)
{
    int near, far, file = open("/proc/self/stat", O_RDONLY), datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    HOLDS(sweetspot_attach(-1, NULL) == SWEETSPOT_ERROR_CLOSED);
    HOLDS(sweetspot_attach(1 << 30, NULL) == SWEETSPOT_ERROR_CLOSED);
    HOLDS(sweetspot_attach(file, NULL) == SWEETSPOT_ERROR_NOT_TCP);
    HOLDS(sweetspot_attach(datagrams, NULL) == SWEETSPOT_ERROR_NOT_TCP);
    HOLDS(sweetspot_attach(listener, NULL) == SWEETSPOT_ERROR_LISTENING);
    pair(&near, &far);
    int64_t number = sweetspot_attach(near, NULL);
    HOLDS(number > 0);
    HOLDS(sweetspot_attach(near, NULL) == SWEETSPOT_ERROR_ALREADY_ATTACHED);
    HOLDS(sweetspot_detach(number) == SWEETSPOT_OK);
    close(near), close(far), close(file), close(datagrams);
}

static void refuses_invalid_options(void)
{
    int near, far;
    pair(&near, &far);
    sweetspot_options options = { .struct_size = sizeof options };
    const char *wrong[] = { "sobas", "nonsense", "fixed:", "" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.sizing = wrong[i];
        HOLDS(sweetspot_attach(near, &options) == SWEETSPOT_ERROR_INVALID);
    }
    options.sizing = NULL;
    options.flags = 1u << 31;
    HOLDS(sweetspot_attach(near, &options) == SWEETSPOT_ERROR_INVALID);
    options.flags = 0;
    options.struct_size = 4;
    HOLDS(sweetspot_attach(near, &options) == SWEETSPOT_ERROR_INVALID);
    HOLDS(sweetspot_report(1, NULL) == SWEETSPOT_ERROR_INVALID);
    close(near), close(far);
}

static void a_number_is_detached_once(void)
{
    int near, far;
    pair(&near, &far);
    int64_t number = sweetspot_attach(near, NULL);
    HOLDS(report(number) == SWEETSPOT_OK);
    HOLDS(sweetspot_detach(number) == SWEETSPOT_OK);
    HOLDS(sweetspot_detach(number) == SWEETSPOT_ERROR_NOT_ATTACHED);
    HOLDS(report(number) == SWEETSPOT_ERROR_NOT_ATTACHED);
    HOLDS(sweetspot_detach(0) == SWEETSPOT_ERROR_NOT_ATTACHED);
    HOLDS(sweetspot_detach(-5) == SWEETSPOT_ERROR_NOT_ATTACHED);
    HOLDS(sweetspot_detach(INT64_MAX) == SWEETSPOT_ERROR_NOT_ATTACHED);
    close(near), close(far);
}

static void *closes(void *fd)
{
    close(*(int *)fd);
    return NULL;
}

static void a_descriptor_may_be_closed_first(void)
{
    int near, far;
    pthread_t thread;
    pair(&near, &far);
    int64_t number = sweetspot_attach(near, NULL);
    HOLDS(pthread_create(&thread, NULL, closes, &near) == 0);
    pthread_join(thread, NULL);
    /* Nothing keeps the connection open: the peer reads end of file. */
    char byte;
    HOLDS(read(far, &byte, 1) == 0);
    HOLDS(sweetspot_detach(number) == SWEETSPOT_ERROR_CLOSED);
    close(far);
}

static int clamp_of(int fd)
{
    int clamp = 0;
    socklen_t length = sizeof clamp;
    HOLDS(getsockopt(fd, IPPROTO_TCP, 10 /* TCP_WINDOW_CLAMP */, &clamp, &length) == 0);
    return clamp;
}

static void a_child_gets_errors_for_the_sockets_of_its_parent(void)
{
    int near, far, status;
    pair(&near, &far);
    int64_t number = sweetspot_attach(near, NULL);
    pid_t child = fork();
    if (child == 0) {
        HOLDS(report(number) == SWEETSPOT_ERROR_FORKED);
        HOLDS(sweetspot_detach(number) == SWEETSPOT_ERROR_FORKED);
        /* The child attaches its own socket. */
        int own, peer;
        pair(&own, &peer);
        int64_t second = sweetspot_attach(own, NULL);
        HOLDS(second > 0 && second != number);
        HOLDS(report(second) == SWEETSPOT_OK);
        HOLDS(sweetspot_detach(second) == SWEETSPOT_OK);
        _exit(0);
    }
    HOLDS(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    HOLDS(report(number) == SWEETSPOT_OK);
    HOLDS(sweetspot_detach(number) == SWEETSPOT_OK);
    close(near), close(far);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int taken, gone;

static void observe(const sweetspot_event *event, void *context)
{
    pthread_mutex_lock(&mutex);
    HOLDS(context == &taken && event->socket > 0 && event->why[0] != 0);
    taken += strcmp(sweetspot_event_name(event->kind), "taken") == 0;
    gone += strcmp(sweetspot_event_name(event->kind), "gone") == 0;
    pthread_mutex_unlock(&mutex);
}

static int count(int *counter)
{
    pthread_mutex_lock(&mutex);
    int value = *counter;
    pthread_mutex_unlock(&mutex);
    return value;
}

static void moves(int from, int to)
{
    static char block[50000];
    HOLDS(write(from, block, sizeof block) == sizeof block);
    for (size_t got = 0; got < sizeof block;) {
        ssize_t n = read(to, block, sizeof block);
        HOLDS(n > 0);
        got += n;
    }
    usleep(2000);
}

static void a_limit_is_set_reported_and_lifted(void)
{
    int near, far;
    pair(&near, &far);
    int before = clamp_of(near);
    sweetspot_options options = { .struct_size = sizeof options,
                                  .sizing = "fixed:300kB",
                                  .observer = observe,
                                  .context = &taken };
    int64_t number = sweetspot_attach(near, &options);
    HOLDS(number > 0);
    sweetspot_status status = { .struct_size = sizeof status };
    for (int i = 0; i < 5000 && status.limit != 300000; i++) {
        moves(far, near);
        HOLDS(sweetspot_report(number, &status) == SWEETSPOT_OK);
    }
    HOLDS(status.limit == 300000 && clamp_of(near) <= 300000);
    HOLDS(status.activity == SWEETSPOT_ACTIVE && status.is_sender == 0 && status.rtt > 0);
    HOLDS(strcmp(sweetspot_phase_name(status.phase), "holding") == 0);
    /* The observer is called once the limit can be read. */
    for (int i = 0; i < 5000 && count(&taken) == 0; i++)
        usleep(2000);
    HOLDS(count(&taken) == 1);
    HOLDS(sweetspot_detach(number) == SWEETSPOT_OK);
    HOLDS(clamp_of(near) >= before);
    number = sweetspot_attach(near, &options);
    close(near);
    close(far);
    for (int i = 0; i < 5000 && count(&gone) == 0; i++)
        usleep(2000);
    HOLDS(count(&gone) == 1);
    HOLDS(sweetspot_detach(number) == SWEETSPOT_ERROR_CLOSED);
}

/* The number of descriptors that a program run by exec(3) would inherit. */
static int inherited(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        count += flags >= 0 && !(flags & FD_CLOEXEC);
    }
    return count;
}

static void a_program_run_by_exec_gets_no_descriptor_of_the_library(int before)
{
    int near, far;
    pair(&near, &far);
    int64_t number = sweetspot_attach(near, NULL);
    HOLDS(inherited() == before + 2);
    HOLDS(sweetspot_detach(number) == SWEETSPOT_OK);
    close(near), close(far);
}

static void a_process_that_is_killed_leaves_no_limit_on_sockets_of_others(void)
{
    int near, far, status;
    pair(&near, &far);
    int64_t number = sweetspot_attach(near, NULL);
    int before = clamp_of(near);
    pid_t child = fork();
    if (child == 0) {
        int own, peer;
        pair(&own, &peer);
        sweetspot_options options = { .struct_size = sizeof options, .sizing = "fixed:300kB" };
        HOLDS(sweetspot_attach(own, &options) > 0);
        while (clamp_of(own) > 300000)
            moves(peer, own);
        raise(SIGKILL);
    }
    HOLDS(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    HOLDS(clamp_of(near) == before);
    HOLDS(sweetspot_detach(number) == SWEETSPOT_OK);
    close(near), close(far);
}

static void invites_and_joins(void)
{
    int near, far;
    uint8_t invitation[64] = { 0 };
    pair(&near, &far);
    HOLDS(sweetspot_invite(near, NULL, NULL, 64) == SWEETSPOT_ERROR_INVALID);
    HOLDS(sweetspot_invite(near, NULL, invitation, SWEETSPOT_INVITATION_BYTES - 1) == SWEETSPOT_ERROR_INVALID);
    HOLDS(sweetspot_invite(-1, NULL, invitation, sizeof invitation) == SWEETSPOT_ERROR_CLOSED);
    HOLDS(sweetspot_invite(listener, NULL, invitation, sizeof invitation) == SWEETSPOT_ERROR_LISTENING);
    int unconnected = socket(AF_INET, SOCK_STREAM, 0);
    HOLDS(sweetspot_invite(unconnected, NULL, invitation, sizeof invitation) == SWEETSPOT_ERROR_NOT_CONNECTED);
    int64_t host = sweetspot_invite(near, NULL, invitation, sizeof invitation);
    HOLDS(host > 0);
    for (size_t length = 0; length < SWEETSPOT_INVITATION_BYTES; length++)
        HOLDS(sweetspot_join(far, NULL, invitation, length) == SWEETSPOT_ERROR_INVITATION);
    HOLDS(sweetspot_join(far, NULL, NULL, 0) == SWEETSPOT_ERROR_INVALID);
    int64_t guest = sweetspot_join(far, NULL, invitation, SWEETSPOT_INVITATION_BYTES);
    HOLDS(guest > 0);
    sweetspot_status status = { .struct_size = sizeof status };
    for (int i = 0; i < 5000 && status.both_ends != 1; i++) {
        moves(near, far);
        HOLDS(sweetspot_report(guest, &status) == SWEETSPOT_OK);
    }
    HOLDS(status.both_ends == 1);
    HOLDS(sweetspot_detach(host) == SWEETSPOT_OK && sweetspot_detach(guest) == SWEETSPOT_OK);
    close(near), close(far), close(unconnected);
}

static void cycles_leave_no_descriptor_behind(int cycles)
{
    int near, far, before = dup(0);
    close(before);
    pair(&near, &far);
    for (int i = 0; i < cycles; i++)
        HOLDS(sweetspot_detach(sweetspot_attach(near, NULL)) == SWEETSPOT_OK);
    close(near), close(far);
    int after = dup(0);
    close(after);
    HOLDS(after == before);
}

/* laws [CYCLES [only]] */
int main(int argc, char **argv)
{
    int cycles = argc > 1 ? atoi(argv[1]) : 10000;
    HOLDS(sweetspot_abi_version() == SWEETSPOT_ABI_VERSION);
    for (int error = -20; error <= 1; error++)
        HOLDS(sweetspot_strerror(error)[0] != 0);
    listen_on_loopback();
    if (argc > 2) {
        cycles_leave_no_descriptor_behind(cycles);
        puts("all laws hold");
        return 0;
    }
    int before = inherited();
    refuses_what_is_no_tcp_connection();
    refuses_invalid_options();
    a_number_is_detached_once();
    a_descriptor_may_be_closed_first();
    a_child_gets_errors_for_the_sockets_of_its_parent();
    a_limit_is_set_reported_and_lifted();
    invites_and_joins();
    a_program_run_by_exec_gets_no_descriptor_of_the_library(before);
    a_process_that_is_killed_leaves_no_limit_on_sockets_of_others();
    HOLDS(sweetspot_set_memory_budget(SWEETSPOT_UNLIMITED) == SWEETSPOT_OK);
    cycles_leave_no_descriptor_behind(cycles);
    puts("all laws hold");
    return 0;
}
