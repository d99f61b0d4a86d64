"""Work queues: what to do next, when, and how often to retry. The package knows nothing of Kubernetes.

Guarantees:

- fair: workers get items in the order of their arrival;
- stingy: at most one worker has an item, and adding a queued item again has no effect;
- many producers and many consumers; an item added while a worker has it is processed once more;
- a shutdown wakes every waiting thread.

Each class wraps the one above it and can be used alone:

    queue.Queue                               what
    delaying_queue.DelayingQueue              + when            (timers.Timers: one thread for all queues)
    rate_limiting_queue.RateLimitingQueue     + how often       (rate_limiters)

    priority_queue.PriorityQueue              all of the above, and in which order

Each queue counts in plain numbers; `metrics` turns them into Prometheus series at a scrape.
"""
