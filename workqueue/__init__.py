"""Work queues: what to do next, when, and how often to try again. Knows nothing of Kubernetes.

What they promise:

- fair: items are handed out in the order in which they came;
- stingy: an item is never with two workers, and adding it again while it waits changes nothing;
- many producers and many consumers; an item may be added again while it is processed, and is then processed once more;
- a shutdown is noticed by everybody who waits.

A ladder in which each step wraps the previous one and is usable alone:

    queue.Queue                               what
    delaying_queue.DelayingQueue              + when            (timers.Timers: one thread for all queues)
    rate_limiting_queue.RateLimitingQueue     + how often       (rate_limiters)

    priority_queue.PriorityQueue              the whole ladder again, and: what first

Each queue keeps its statistics as plain numbers; `metrics` shows them to Prometheus when asked.
"""
