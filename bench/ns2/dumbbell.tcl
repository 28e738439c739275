# The benchmark's scenarios in ns-2.35: Figure 2 of Jain, Prasad, Dovrolis, "The TCP Bandwidth-Delay
# Product revisited". One Reno transfer through R1 - R2, with cross traffic in both directions that
# has the same windows, RTTs and timers as in scenarios/elephants.toml and
# bench/scenarios/mice.toml.
#
#   ns dumbbell.tcl elephants|mice COUNT END
#
# Prints the packets that the bottleneck forwarded in both directions, the wall time of the run in
# seconds (excluding the construction of the network), and peak memory.

remove-all-packet-headers
add-packet-header IP TCP Flags

set cross [lindex $argv 0]
set count [lindex $argv 1]
set end [lindex $argv 2]

# Sizes are on the wire; an initial window of 2; timers as in the scenario.
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1000
Agent/TCP set windowInit_ 2
Agent/TCP set minrto_ 0.2
Agent/TCP set tcpTick_ 0.01
Queue set limit_ 1000000

set ns [new Simulator]
set rng [new RNG]
$rng seed 7919

proc connect {from to rate delay limit} {
    global ns
    $ns duplex-link $from $to $rate $delay DropTail
    $ns queue-limit $from $to $limit
    $ns queue-limit $to $from $limit
}

proc transfer {from to window} {
    global ns
    set sender [new Agent/TCP/Reno]
    set sink [new Agent/TCPSink]
    $sender set window_ $window
    $ns attach-agent $from $sender
    $ns attach-agent $to $sink
    $ns connect $sender $sink
    return [list $sender $sink]
}

set left [$ns node]
set right [$ns node]
connect $left $right 50Mb 20ms 625
set there [$ns monitor-queue $left $right ""]
set back [$ns monitor-queue $right $left ""]

# The measured transfer.
set source [$ns node]
set drain [$ns node]
connect $source $left 1000Mb 15ms 1000000
connect $right $drain 1000Mb 15ms 1000000
set target [lindex [transfer $source $drain 450] 0]
set file [new Application/FTP]
$file attach-agent $target
$ns at 15.0 "$file start"

# A mouse is a user: a new connection of 10 to 15 packets, a sleep, and so on. Connections rotate
# through a pool of agents per node and reset them, because creating agents takes ns-2 longer.
proc begin {node} {
    global ns rng idle ends agentnode sinkof
    if {[llength $idle($node)]} {
        set sender [lindex $idle($node) 0]
        set idle($node) [lrange $idle($node) 1 end]
    } else {
        foreach {sender sink} [transfer [lindex $ends($node) 0] [lindex $ends($node) 1] 20] {}
        set sinkof($sender) $sink
        $sender proc done {} "finish $sender"
    }
    set agentnode($sender) $node
    $sender reset
    $sinkof($sender) reset
    $sender advanceby [expr {int(floor([$rng uniform 10 16]))}]
}

proc finish {sender} {
    global ns rng agentnode
    set node $agentnode($sender)
    $ns at [expr {[$ns now] + [$rng uniform 4.85 5.35]}] "begin $node"
    # Packets still in flight must not reach the next connection.
    $ns at [expr {[$ns now] + 0.5}] "lappend idle($node) $sender"
}

set nodes [expr {$cross == "mice" ? 10 : $count}]
foreach {near far} [list $left $right $right $left] {
    for {set i 0} {$i < $nodes} {incr i} {
        # RTTs evenly spaced from 80 to 120 ms.
        set rtt [expr {0.080 + 0.040 * $i / ($nodes - 1)}]
        set node [$ns node]
        connect $node $near 1000Mb [expr {$rtt / 2 - 0.020}] 1000000
        if {$cross == "mice"} {
            set ends($node) [list $node $far]
            set idle($node) {}
            for {set j 0} {$j < $count / $nodes} {incr j} {
                $ns at [$rng uniform 0 5.75] "begin $node"
            }
        } else {
            set ftp [new Application/FTP]
            $ftp attach-agent [lindex [transfer $node $far 22] 0]
            $ns at [$rng uniform 0 3] "$ftp start"
        }
    }
}

$ns at $end {
    set wall [expr {([clock clicks -microseconds] - $begun) / 1e6}]
    set packets [expr {[$there set pdepartures_] + [$back set pdepartures_]}]
    set status [open /proc/self/status]
    regexp {VmHWM:\s+(\d+)} [read $status] all peak
    puts "packets=[format %.0f $packets] wall_s=$wall peak_kb=$peak"
    exit 0
}
set begun [clock clicks -microseconds]
$ns run
