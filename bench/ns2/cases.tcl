# A case of the agreement study in ns-2.35: the dumbbell of Figure 2 of Jain, Prasad, Dovrolis, "The TCP
# Bandwidth-Delay Product revisited", with any rate, RTT and buffer.
#
#   ns cases.tcl rate=20 rtt=50 buffer=60 cross=elephants count=10 window=120
#
# Options are named like the keys of a Sweetspot scenario; their meaning and units are documented with
# their defaults. Prints one line: goodput_mbps,loss_all,queue_mean_pkt,rtt_mean_ms,utilisation_before
array set option {
    rate       50
    rtt        100
    buffer     625
    packet     1000
    window     450
    congestion Reno
    delayed    0
    iw         2
    start      15
    warmup     50
    duration   150
    seed       1
    reverse    mirror
    cross      none
    count      20
    cross_window 22
    cross_rate 3.5
    cross_delayed 0
    packets    {10 15}
    sleep      {4.85 5.35}
}
# rate Mbit/s; rtt ms, two-way propagation of the target (cross traffic: 0.8 to 1.2 of it); buffer,
# window, cross_window, iw, packets in packets; packet bytes; start, warmup, duration, sleep s;
# cross_rate Mbit/s per UDP source; delayed, cross_delayed: delayed ACKs at the target's sink, at others'.
foreach argument $argv {
    if {![regexp {^([a-z_]+)=(.*)$} $argument -> key value] || ![info exists option($key)]} {
        puts stderr "$argument is no option; there are: [lsort [array names option]]"
        exit 2
    }
    set option($key) $value
}
foreach key [array names option] { set $key $option($key) }

remove-all-packet-headers
add-packet-header IP TCP Flags RTP
# A data packet is `packet` bytes on the wire, as in the paper.
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ $packet
Agent/TCP set windowInit_ $iw
Queue set limit_ 1000000

set ns [new Simulator]
$defaultRNG seed $seed
set lot [new RNG]
$lot seed [expr {$seed * 7919 + 13}]

set bits [expr {$rate * 1e6}]
set seconds [expr {$rtt / 1e3}]
set between [expr {$seconds / 5}]
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right $bits $between DropTail
$ns queue-limit $left $right $buffer
$ns queue-limit $right $left $buffer

proc host {router delay} {
    set node [$::ns node]
    $::ns duplex-link $node $router 1e9 $delay DropTail
    return $node
}

# A connection's agents; every connection has its own flow ID.
set flows 0
proc connection {congestion from to window delayed} {
    set agent [new Agent/TCP/$congestion]
    set sink Agent/TCPSink
    if {$congestion eq "Sack1"} { append sink /Sack1 }
    if {$delayed} { append sink /DelAck }
    set sink [new $sink]
    $agent set window_ $window
    foreach one [list $agent $sink] { $one set fid_ $::flows }
    incr ::flows
    $::ns attach-agent $from $agent
    $::ns attach-agent $to $sink
    $::ns connect $agent $sink
    return [list $agent $sink]
}

proc start_bulk {agent at} {
    set application [new Application/FTP]
    $application attach-agent $agent
    $::ns at $at "$application start"
}

# The target's hosts add the propagation delay that the routers do not.
set own [expr {($seconds / 2 - $between) / 2}]
set target [lindex [connection $congestion [host $left $own] [host $right $own] $window $delayed] 0]
start_bulk $target $start

# Sources on nodes with evenly spaced RTTs; their sinks are at the router.
proc nodes {n router} {
    set nodes {}
    for {set i 0} {$i < $n} {incr i} {
        set share [expr {$n > 1 ? double($i) / ($n - 1) : 0.5}]
        lappend nodes [host $router [expr {$::seconds * (0.8 + 0.4 * $share) / 2 - $::between}]]
    }
    return $nodes
}

proc elephants {from to} {
    foreach node [nodes $::count $from] {
        set agent [lindex [connection Reno $node $to $::cross_window $::cross_delayed] 0]
        start_bulk $agent [$::lot uniform 0 3]
    }
}

# ns-2's Pareto source sends bursts; bursts of one packet give Pareto gaps.
proc pareto {from to} {
    set wire [expr {$::packet * 8 / 100e9}]
    foreach node [nodes $::count $from] {
        set agent [new Agent/UDP]
        $agent set packetSize_ [expr {2 * $::packet}]
        set sink [new Agent/Null]
        $::ns attach-agent $node $agent
        $::ns attach-agent $to $sink
        $::ns connect $agent $sink
        set source [new Application/Traffic/Pareto]
        $source set packetSize_ $::packet
        $source set shape_ 1.5
        $source set rate_ 100e9
        $source set burst_time_ 1e-12
        $source set idle_time_ [expr {$::packet * 8.0 / ($::cross_rate * 1e6) - $wire}]
        $source attach-agent $agent
        $::ns at [$::lot uniform 0 1] "$source start"
    }
}

# Users that send a few packets, sleep, and start again in slow start.
proc mice {from to} {
    set nodes [nodes 10 $from]
    for {set i 0} {$i < $::count} {incr i} {
        set pair [connection Reno [lindex $nodes [expr {$i % 10}]] $to $::cross_window $::cross_delayed]
        [lindex $pair 0] proc done {} "rest {$pair}"
        $::ns at [$::lot uniform 0 [expr {[lindex $::sleep 1] + 0.4}]] "begin {$pair}"
    }
}
proc begin {pair} {
    foreach {agent sink} $pair {}
    # An agent that has lost a SYN keeps an initial window of one, which `reset` does not change.
    $agent set windowInit_ $::iw
    $agent reset
    $sink reset
    set most [expr {[lindex $::packets 1] + 1}]
    $agent advanceby [expr {int([$::lot uniform [lindex $::packets 0] $most])}]
}
proc rest {pair} {
    set pause [$::lot uniform [lindex $::sleep 0] [lindex $::sleep 1]]
    $::ns at [expr {[$::ns now] + $pause}] "begin {$pair}"
}

if {$cross ne "none"} {
    $cross $left $right
    if {$reverse eq "mirror"} { $cross $right $left }
}

# Counters, read at the ends of intervals.
set forward [$ns monitor-queue $left $right ""]
set backward [$ns monitor-queue $right $left ""]
foreach monitor [list $forward $backward] {
    $monitor set-pkts-integrator [new Integrator]
    $monitor set-bytes-integrator [new Integrator]
}
proc integral {which monitor} {
    set integrator [$monitor get-$which-integrator]
    $integrator newpoint [$::ns now] [$integrator set lasty_]
    return [$integrator set sum_]
}
proc note {moment} {
    global forward backward seen
    set seen($moment) [list [$::ns now] [$::target set ack_] [$forward set parrivals_] \
        [$forward set pdrops_] [$forward set bdepartures_] [integral pkts $forward] \
        [integral bytes $forward] [integral bytes $backward]]
}
proc between {from to which} {
    return [expr {double([lindex $::seen($to) $which]) - [lindex $::seen($from) $which]}]
}
set begin [expr {$start + $warmup}]
$ns at [expr {$start * 2.0 / 3}] "note early"
$ns at $start "note start"
$ns at $begin "note begin"
$ns at [expr {$begin + $duration}] "note end; $ns halt"
$ns run

set goodput [expr {[between begin end 1] * $packet * 8 / $duration / 1e6}]
set loss [expr {[between begin end 3] / [between begin end 2]}]
set queue [expr {[between begin end 5] / $duration}]
set waited [expr {([between begin end 6] + [between begin end 7]) * 8 / $bits / $duration}]
set trip [expr {($seconds + $waited + $packet * 8 / $bits) * 1e3}]
set before [expr {[between early start 4] * 8 / $bits / ($start / 3.0)}]
puts [format "%.3f,%.6f,%.2f,%.3f,%.4f" $goodput $loss $queue $trip $before]
exit 0
