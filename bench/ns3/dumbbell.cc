// The benchmark's scenarios in ns-3: those in bench/ns2/dumbbell.tcl, and bench/scenarios/sack.toml.
//
//   dumbbell elephants|mice|sack COUNT END
//
// Prints the packets that the bottleneck forwarded in both directions, the wall time of the run in seconds
// (excluding the construction of the network), peak memory, and the target's goodput over the last half of
// the run.
//
// The scenarios are the same as far as ns-3 supports them. Differences:
// - Every packet has two bytes of PPP. With them, data packets have the scenario's size, and ACKs have 42
//   bytes.
// - Losses are repaired by NewReno (RFC 6582), where ns-2 and the scenarios use Reno; ns-3 has no other loss
//   recovery without SACK.
// - Windows are in bytes: whole segments, as many as the scenario has packets.
// - A mouse's connection is opened by three packets and closed by FINs, like a real one.

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace ns3;

namespace
{

/// The parameters in which the cases differ.
struct Case
{
    std::string cross;
    uint32_t packet;          // bytes on the wire
    DataRate rate;            // of the bottleneck
    DataRate access;          // of hosts' links
    uint32_t buffer;          // packets, the one in service among them
    Time trunk;               // the bottleneck's propagation
    Time edge;                // that between the target's hosts and their routers
    uint32_t window;          // of the target, packets
    bool sack;
    Time start;               // of the target
};

Case
CaseOf(const std::string& cross)
{
    if (cross == "sack")
    {
        return {cross, 1500, DataRate("1Gbps"), DataRate("10Gbps"), 4167, MilliSeconds(10),
                MicroSeconds(7500), 6000, true, Seconds(0)};
    }
    return {cross, 1000, DataRate("50Mbps"), DataRate("1Gbps"), 625, MilliSeconds(20),
            MilliSeconds(15), 450, false, Seconds(15)};
}

constexpr uint32_t HEADERS = 42; // IP 20, TCP 20, PPP 2

/// A node's address on a link, and its queue towards the other end.
struct End
{
    Ipv4Address address;
    Ptr<Queue<Packet>> queue;
};

Ptr<UniformRandomVariable> g_random;
uint32_t g_segment;
uint64_t g_received; // by the target's sink, bytes

/// Settings of every TCP connection.
void
Configure(const Case& c)
{
    g_segment = c.packet - HEADERS;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(g_segment));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(2 * c.window * g_segment));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(c.sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(10)));
    // A port becomes free again after 0.5 s.
    Config::SetDefault("ns3::TcpSocketBase::MaxSegLifetime", DoubleValue(0.25));
}

/// Links two nodes, with a drop-tail queue of `buffer` packets in each direction, including the one in
/// service.
std::pair<End, End>
Connect(Ptr<Node> a, Ptr<Node> b, DataRate rate, Time delay, uint32_t buffer)
{
    static Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    PointToPointHelper link;
    // No queueing discipline above the device: the device's queue is the buffer.
    link.DisableFlowControl();
    link.SetDeviceAttribute("DataRate", DataRateValue(rate));
    link.SetChannelAttribute("Delay", TimeValue(delay));
    // The device removes the packet in service from its queue.
    link.SetQueue("ns3::DropTailQueue<Packet>",
                  "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, buffer - 1)));
    NetDeviceContainer devices = link.Install(a, b);
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    addresses.NewNetwork();
    auto end = [&](uint32_t i) {
        return End{interfaces.GetAddress(i),
                   DynamicCast<PointToPointNetDevice>(devices.Get(i))->GetQueue()};
    };
    return {end(0), end(1)};
}

/// Routes unknown destinations through the `interface`-th link, to `gateway`.
void
RouteByDefault(Ptr<Node> node, Ipv4Address gateway, uint32_t interface = 1)
{
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(node->GetObject<Ipv4>())->SetDefaultRoute(gateway, interface);
}

void
Drain(Ptr<Socket> socket)
{
    while (socket->Recv())
    {
    }
}

void
DrainAndCount(Ptr<Socket> socket)
{
    while (Ptr<Packet> data = socket->Recv())
    {
        g_received += data->GetSize();
    }
}

void
Close(Ptr<Socket> socket)
{
    socket->Close();
}

/// Accepts connections on `port` and advertises `window` packets to each.
void
Listen(Ptr<Node> node, uint16_t port, uint32_t window, void (*read)(Ptr<Socket>))
{
    Ptr<Socket> socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
    // Half a segment is added, because window scaling may round that much away.
    socket->SetAttribute("RcvBufSize", UintegerValue(window * g_segment + g_segment / 2));
    socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
    socket->Listen();
    socket->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                              [read](Ptr<Socket> accepted, const Address&) {
                                  accepted->SetRecvCallback(MakeCallback(read));
                                  accepted->SetCloseCallbacks(MakeCallback(&Close),
                                                              MakeCallback(&Close));
                              });
}

/// An endless transfer from `node`.
void
Send(Ptr<Node> node, Ipv4Address to, uint16_t port, Time start)
{
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(to, port));
    bulk.SetAttribute("SendSize", UintegerValue(g_segment));
    bulk.Install(node).Start(start);
}

/// A mouse is a user: a new connection of 10 to 15 packets, a sleep, and so on.
struct Mouse
{
    Ptr<Node> node;
    InetSocketAddress to;

    void Begin()
    {
        Ptr<Socket> socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        socket->TraceConnectWithoutContext("State", MakeCallback(&Mouse::Follow, this));
        socket->Connect(to);
        socket->Send(Create<Packet>(g_random->GetInteger(10, 15) * g_segment));
        socket->Close(); // when all of it is sent
    }

    void Follow(TcpSocket::TcpStates_t before, TcpSocket::TcpStates_t now)
    {
        bool gave_up = now == TcpSocket::CLOSED && before != TcpSocket::TIME_WAIT;
        if (now == TcpSocket::TIME_WAIT || gave_up)
        {
            Simulator::Schedule(Seconds(g_random->GetValue(4.85, 5.35)), &Mouse::Begin, this);
        }
    }
};

/// The cross traffic from hosts at `near`; its sinks are at the other router, `far`.
void
AddCross(const Case& c, uint32_t count, Ptr<Node> near, Ptr<Node> far, Ipv4Address to)
{
    uint32_t nodes = c.cross == "mice" ? 10 : count;
    uint16_t port = 9;
    Listen(far, port, c.cross == "mice" ? 20 : 22, Drain);
    for (uint32_t i = 0; i < nodes; ++i)
    {
        // RTTs evenly spaced from 80 to 120 ms.
        Time rtt = Seconds(0.080 + 0.040 * i / (nodes - 1));
        Ptr<Node> node = CreateObject<Node>();
        InternetStackHelper().Install(node);
        auto [host, router] = Connect(node, near, c.access, rtt / 2 - c.trunk, 1000000);
        RouteByDefault(node, router.address);
        if (c.cross == "elephants")
        {
            Send(node, to, port, Seconds(g_random->GetValue(0, 3)));
            continue;
        }
        for (uint32_t j = 0; j < count / nodes; ++j)
        {
            auto mouse = new Mouse{node, InetSocketAddress(to, port)};
            Simulator::Schedule(Seconds(g_random->GetValue(0, 5.75)), &Mouse::Begin, mouse);
        }
    }
}

/// The number of packets passed to the link after a queue.
uint64_t
Forwarded(const End& end)
{
    return end.queue->GetTotalReceivedPackets() - end.queue->GetNPackets();
}

} // namespace

int
main(int argc, char* argv[])
{
    if (argc != 4)
    {
        std::fprintf(stderr, "usage: dumbbell elephants|mice|sack COUNT END\n");
        return 2;
    }
    const Case c = CaseOf(argv[1]);
    const uint32_t count = std::atoi(argv[2]);
    const double end = std::atof(argv[3]);
    Configure(c);
    g_random = CreateObject<UniformRandomVariable>();

    NodeContainer nodes(4);
    InternetStackHelper().Install(nodes);
    Ptr<Node> left = nodes.Get(0);
    Ptr<Node> right = nodes.Get(1);
    Ptr<Node> source = nodes.Get(2);
    Ptr<Node> sink = nodes.Get(3);
    auto [there, back] = Connect(left, right, c.rate, c.trunk, c.buffer);
    RouteByDefault(left, back.address);
    RouteByDefault(right, there.address);
    auto from = Connect(source, left, c.access, c.edge, 1000000);
    auto to = Connect(sink, right, c.access, c.edge, 1000000);
    RouteByDefault(source, from.second.address);
    RouteByDefault(sink, to.second.address);

    Listen(sink, 8, c.window, DrainAndCount);
    Send(source, to.first.address, 8, c.start);
    if (c.cross != "sack")
    {
        AddCross(c, count, left, right, back.address);
        AddCross(c, count, right, left, there.address);
    }

    uint64_t half = 0;
    Simulator::Schedule(Seconds(end / 2), [&half] { half = g_received; });
    Simulator::Stop(Seconds(end));
    const auto begun = std::chrono::steady_clock::now();
    Simulator::Run();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begun;

    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const uint64_t packets = Forwarded(there) + Forwarded(back);
    // Payload per packet on the wire, as counted by the other simulators.
    const double goodput = double(g_received - half) / g_segment * c.packet * 8 / (end / 2) / 1e6;
    std::printf("packets=%lu wall_s=%.6f peak_kb=%ld goodput_mbps=%.3f\n",
                packets,
                wall.count(),
                usage.ru_maxrss,
                goodput);
    // The process exits here, so the network is not torn down.
    std::fflush(stdout);
    std::_Exit(0);
}
