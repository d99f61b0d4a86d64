"""`kubectl tidb status`: reads facts, builds a report, and renders a page.

facts (requests) → report (pure; the document) → page (pure; 80 columns)
"""
